/**
 * The tables in docs/decisions/performance.md, between two marks. A run replaces the rows of the same workload, major version of
 * Node and number of connections, and leaves the others: so the page can be made in several runs.
 *
 * Surprise: where machine, packages or length of the rounds are others than those of the page, nothing of it is kept:
 * figures that cannot be compared do not stand beside each other.
 */
import { renderSection, type Section } from './tables.ts'

const beginMark = '<!-- figures: written by npm run bench -->'
const endMark = '<!-- end of the figures -->'

/**
 * Puts sections into the text of the document.
 * @param conditions one line: what the figures were measured with
 * @param order the titles of all sections in their order
 * @throws Error when the marks are missing
 */
export function writeFigures(
  text: string,
  { conditions, sections, order }: { conditions: string; sections: readonly Section[]; order: readonly string[] },
): string {
  const from = text.indexOf(beginMark)
  const to = text.indexOf(endMark)
  if (from < 0 || to < from) {
    throw new Error(`Cannot write the figures: the marks ${beginMark} and ${endMark} are missing`)
  }
  const region = text.slice(from + beginMark.length, to)
  const merged = new Map(readSections(region, conditions).map((section) => [section.title, section]))
  for (const section of sections) merged.set(section.title, merge(merged.get(section.title), section))
  const sorted = [...merged.values()].sort((a, b) => order.indexOf(a.title) - order.indexOf(b.title))
  const content = [conditions, '', ...sorted.map(renderSection)].join('\n')
  return `${text.slice(0, from)}${beginMark}\n\n${content}\n${text.slice(to)}`
}

/** The sections as they stand there; none when the conditions are others. */
function readSections(region: string, conditions: string): Section[] {
  const [head = '', ...parts] = region.split(/^### /m)
  if (head.trim() !== conditions) return []
  return parts.map((part) => {
    const [title = '', , note = '', ...lines] = part.split('\n')
    const rows = lines.filter((line) => /^\| \d/.test(line))
    return { title, note, rows, differences: lines.filter((line) => line.startsWith('- ')) }
  })
}

function merge(old: Section | undefined, section: Section): Section {
  if (old === undefined) return section
  const groups = new Set(section.rows.map(groupOf))
  const rows = [...old.rows.filter((row) => !groups.has(groupOf(row))), ...section.rows]
  const differences = new Map([...old.differences, ...section.differences].map((line) => [line.split(':', 1)[0], line]))
  return { ...section, rows: rows.toSorted((a, b) => rankOf(a) - rankOf(b)), differences: [...differences.values()] }
}

/** Major version of Node and number of connections. */
function groupOf(row: string): string {
  const [, node = '', connections = ''] = row.split('|')
  return `${Number.parseInt(node, 10)} ${connections.trim()}`
}

function rankOf(row: string): number {
  const [node, connections] = groupOf(row).split(' ')
  return Number(node) * 1_000_000 + Number(connections)
}
