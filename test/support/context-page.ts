import type { Page } from './markdown.ts'

/** A member of the context as `docs/context.md` has it. */
export interface ContextRow {
  readonly name: string
  /** Its type; of a function with `=>`. */
  readonly type: string
  readonly example: string
}

/** The rows of all tables of `docs/context.md` with a member, what it is, and an example. */
export function contextRows({ prose }: Page): ContextRow[] {
  const rows: ContextRow[] = []
  let within = false
  for (const line of prose.split('\n')) {
    if (!line.startsWith('|')) within = false
    else if (/^\| member \|.*\| example \|$/.test(line)) within = true
    else if (within && !line.startsWith('| ---')) rows.push(rowOf(line))
  }
  return rows
}

function rowOf(line: string): ContextRow {
  const cells = line.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'))
  const [signature = '', , example = ''] = cells.map((cell) => cell.replace(/^(`+)(.*)\1$/, '$2').trim())
  const [, name = '', parameters, type = ''] = /^(\w+)(\(.*\))?: (.*)$/.exec(signature) ?? []
  if (name === '' || example === '') throw new Error(`docs/context.md has a member without a signature or an example: ${line}`)
  return { name, type: parameters === undefined ? type : `${parameters} => ${type}`, example }
}
