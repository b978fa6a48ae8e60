import type { Page } from './markdown.ts'

/** A member of the context as `docs/context.md` has it. */
export interface ContextRow {
  readonly name: string
  /** Its type; of a function with `=>`. */
  readonly type: string
  readonly example: string
}

/** The rows of all tables of `docs/context.md` with a member, what it is, and an example; and the other names that it gives members. */
export function contextRows({ prose }: Page): ContextRow[] {
  const rows: ContextRow[] = []
  let within = false
  for (const line of prose.split('\n')) {
    if (!line.startsWith('|')) within = false
    else if (/^\| member \|.*\| example \|$/.test(line)) within = true
    else if (within && !line.startsWith('| ---')) rows.push(rowOf(line))
  }
  const [names = ''] = /^The specification's names are [^]*?\n\n/m.exec(prose) ?? []
  const given = [...names.matchAll(/`(\w+)\(([^)]*)\)`\s+for\s+`([\w.]+)`/g)]
  return [...rows, ...given.map(([, name = '', parameters = '', member = '']) => sameAs(rows, member, name, parameters))]
}

/** Another name of a member, with its type and its example; `USession()` is a function that returns what `session` is. */
function sameAs(rows: readonly ContextRow[], path: string, name: string, parameters: string): ContextRow {
  const [member = '', level] = path.split('.')
  const row = rows.find((each) => each.name === member)
  if (row === undefined) throw new Error(`docs/context.md gives ${name} for ${path}, which it does not have`)
  if (level !== undefined) return { name, type: `Context['${member}']['${level}']`, example: `ctx.${name}(${parameters.replace(/\w+/g, "'$&'")})` }
  const isValue = !row.type.includes('=>')
  return { name, type: isValue ? `() => ${row.type}` : row.type, example: row.example.replace(`ctx.${member}`, `ctx.${name}${isValue ? '()' : ''}`) }
}

function rowOf(line: string): ContextRow {
  const cells = line.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'))
  const [signature = '', , example = ''] = cells.map((cell) => cell.replace(/^(`+)(.*)\1$/, '$2').trim())
  const [, name = '', parameters, type = ''] = /^(\w+)(\(.*\))?: (.*)$/.exec(signature) ?? []
  if (name === '' || example === '') throw new Error(`docs/context.md has a member without a signature or an example: ${line}`)
  return { name, type: parameters === undefined ? type : `${parameters} => ${type}`, example }
}
