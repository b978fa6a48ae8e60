import { tableBelow, type Page } from './markdown.ts'

/** A member of the context as documented in `docs/context.md`. */
export interface ContextRow {
  readonly name: string
  /** Its type; of a function with `=>`. */
  readonly type: string
}

/** The members in all tables of `docs/context.md` that begin with `member`, and the other names that the page gives them. */
export function contextRows(page: Page): ContextRow[] {
  const { prose } = page
  const rows: ContextRow[] = []
  let within = false
  for (const line of prose.split('\n')) {
    if (!line.startsWith('|')) within = false
    else if (line.startsWith('| member |')) within = true
    else if (within && !line.startsWith('| ---')) rows.push(rowOf(line))
  }
  const others = tableBelow(page, '## Other names').map((cells) => cells.map((cell) => /\w[\w.]*/.exec(cell)?.[0] ?? ''))
  return [...rows, ...others.map(([name = '', member = '']) => ({ name, type: typeOf(rows, member, name) }))]
}

/** Whether the first cell of a row is the signature of a member: `name: type` or `name(parameter: type): type`. */
export function isSignature(cell: string): boolean {
  return /^`\w+(\(.*\))?: /.test(cell)
}

/** The type of another name of a member. `USession()` is a function that returns what `session` is; no other name of a value is. */
function typeOf(rows: readonly ContextRow[], path: string, name: string): string {
  const [member = '', level] = path.split('.')
  const row = rows.find((each) => each.name === member)
  if (row === undefined) throw new Error(`docs/context.md gives ${name} for ${path}, which it does not have`)
  if (level !== undefined) return `Context['${member}']['${level}']`
  return name === 'USession' ? `() => ${row.type}` : row.type
}

function rowOf(line: string): ContextRow {
  const [cell = ''] = line.slice(1, -1).split(/(?<!\\)\|/).map((each) => each.trim().replaceAll('\\|', '|'))
  const [, name = '', parameters, type = ''] = /^`(\w+)(\(.*\))?: (.*)`$/.exec(cell) ?? []
  if (name === '') throw new Error(`docs/context.md has a member without a signature: ${line}`)
  return { name, type: parameters === undefined ? type : `${parameters} => ${type}` }
}
