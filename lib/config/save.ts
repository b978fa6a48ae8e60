/**
 * Saves changed values to a configuration file. Every other byte is preserved: unknown keys, order, nested or dotted
 * form, indentation, line ends, and changes that others have made since the server started.
 *
 * A key that the file does not have yet is added nested: at the end of its section, or with its section at the end.
 */
import { nodeAt, readJson, type JsonNode } from '../json/json-map.ts'
import { editFile } from '../files/edit-file.ts'
import { findEntries } from './assemble.ts'
import type { Config } from './table.ts'

/**
 * Saves changes. A missing file is created with mode 0600.
 * @param changes keys and their new values, `{'admin.user': 'ann'}`
 * @throws Error with what failed, why, and what to do; the file is then unchanged (see `editFile`)
 */
export function saveConfig(file: string, changes: Partial<Config>): void {
  editFile(file, (text) => editConfig(text, changes))
}

/**
 * Returns the text with the changes applied.
 * @param text undefined for a new file
 * @throws Error when the text is not a JSON object or contains a key twice
 */
export function editConfig(text: string | undefined, changes: Partial<Config>): string {
  return Object.entries(changes).reduce((edited, [key, value]) => setValue(edited, key, value), text ?? '{\n}\n')
}

function setValue(text: string, key: string, value: unknown): string {
  const { value: before, root } = readJson(text)
  const { found, problems } = findEntries(before)
  if (problems[0] !== undefined) throw new Error(problems[0].text)
  const present = found.get(key)
  if (present === undefined) return withMember(text, root, key.split('.'), value)
  if (JSON.stringify(present.value) === JSON.stringify(value)) return text
  const { start, end } = nodeAt(root, present.path) as JsonNode // findEntries has just found this path.
  return text.slice(0, start) + JSON.stringify(value) + text.slice(end)
}

/** Adds a value after the last member of the innermost of its sections that exists. */
function withMember(text: string, object: JsonNode, [name = '', ...names]: readonly string[], value: unknown): string {
  const { start, end, members = [] } = object
  const section = members.find((member) => member.name === name)
  if (section !== undefined) return withMember(text, section.value, names, value)
  const last = members.at(-1)
  const before = text.slice(0, last?.start ?? end - 1)
  const space = before.slice(before.trimEnd().length) || ' '
  const inner = last === undefined && space.includes('\n') ? `${space}  ` : space
  const content = names.reduceRight((nested: unknown, one) => ({ [one]: nested }), value)
  const indented = (line: string): string => (space.includes('\n') ? inner + line.slice(1) : ' ')
  const rendered = JSON.stringify(content, null, 2).replaceAll(/\n */g, indented)
  const member = `${inner}${JSON.stringify(name)}: ${rendered}`
  if (last === undefined) return `${text.slice(0, start)}{${member}${space}}${text.slice(end)}`
  return `${text.slice(0, last.value.end)},${member}${text.slice(last.value.end)}`
}
