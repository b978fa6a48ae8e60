/** Reads the documents: their headings, links and code blocks. Supports only the Markdown that they use. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A fenced block. */
export interface Block {
  /** The info string of the opening fence: `json`, `sh`, ... */
  readonly language: string
  /** The content; every line of it ends with a line end. */
  readonly text: string
  /** The last line of text above it; `''` if a block is in between. */
  readonly above: string
}

/** A document. */
export interface Page {
  /** Relative to the root of the project, with `/`. */
  readonly file: string
  /** The text without its fenced blocks. */
  readonly prose: string
  readonly blocks: readonly Block[]
}

/** The root of the project, absolute, with a last slash. */
export const root = new URL('../../', import.meta.url)

/** All documents of the project. */
export function readPages(): Page[] {
  const top = readdirSync(root).filter((name) => name.endsWith('.md'))
  const docs = readdirSync(new URL('docs/', root), { recursive: true, encoding: 'utf8' })
  return [...top, ...docs.filter((name) => name.endsWith('.md')).map((name) => join('docs', name))].map(readPage)
}

/** One document. */
export function readPage(file: string): Page {
  const blocks: Block[] = []
  let above = ''
  const prose: string[] = []
  let open: { language: string; lines: string[] } | undefined
  for (const line of readFileSync(new URL(file, root), 'utf8').split('\n')) {
    if (open !== undefined) {
      if (line !== '```') {
        open.lines.push(`${line}\n`)
        continue
      }
      blocks.push({ language: open.language, text: open.lines.join(''), above })
      open = undefined
      above = ''
    } else if (line.startsWith('```')) {
      open = { language: line.slice(3), lines: [] }
    } else {
      prose.push(line)
      if (line !== '') above = line
    }
  }
  if (open !== undefined) throw new Error(`${file}: a block has no end`)
  return { file, prose: prose.join('\n'), blocks }
}

/** The fragments that lead to the headings of a page, by GitHub's rule. */
export function headingIds(page: Page): Set<string> {
  const ids = new Set<string>()
  for (const [, title = ''] of page.prose.matchAll(/^#{1,6} (.*)$/gm)) {
    const id = title.toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-')
    let count = 0
    while (ids.has(count === 0 ? id : `${id}-${count}`)) count += 1
    ids.add(count === 0 ? id : `${id}-${count}`)
  }
  return ids
}

/** The targets of the links of a page, as written. */
export function links(page: Page): string[] {
  return [...page.prose.replace(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '')
}

/** The files that a page shows: a block below a line that is a path in backquotes and a colon. */
export function shownFiles(page: Page): Record<string, string> {
  const files: Record<string, string> = {}
  for (const { above, text } of page.blocks) {
    const path = /^`([\w./-]+)`:$/.exec(above)?.[1]
    if (path !== undefined) files[path] = text
  }
  return files
}

/** The files of another server that a page shows: a block below a line that is a path in backquotes, `, in SERVER:`. */
export function shownFilesIn(page: Page, server: string): Record<string, string> {
  const files: Record<string, string> = {}
  for (const { above, text } of page.blocks) {
    const [, path, owner] = /^`([\w./-]+)`, in (.+):$/.exec(above) ?? []
    if (path !== undefined && owner === server) files[path] = text
  }
  return files
}

/** The code spans of a cell. */
export function codeOf(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text)
}

/** The rows of all tables below a heading but the first one's head, each a list of its cells. */
export function tableBelow(page: Page, heading: string): string[][] {
  const at = page.prose.indexOf(`\n${heading}\n`)
  if (at < 0) throw new Error(`${page.file} has no heading "${heading}"`)
  const section = page.prose.slice(at + heading.length + 2).split(/\n#{1,6} /, 1)[0] ?? ''
  const lines = section.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) => {
    return line.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'))
  })
}
