/**
 * Saves changed values to a configuration file. Every other byte stays as it was: unknown keys, order, nested or dotted
 * form, indentation, line ends. So do the changes that somebody else made since the server started.
 *
 * A new key takes the form of its neighbours: beside `"admin.user"` it is dotted, inside `"admin": {...}` it is nested.
 * A group that is missing is added at the end, nested.
 */
import { readValue } from '../base/value.ts'
import { nodeAt, readJson } from '../json/json-map.ts'
import type { JsonNode } from '../json/json-map.ts'
import { editFile, type FileSteps } from '../storage/edit-file.ts'
import { findEntries } from './assemble.ts'
import type { Entry } from './assemble.ts'
import { configTable } from './table.ts'
import type { Config } from './table.ts'

/**
 * Where a new key goes: into the object at `path`, as `names` below it, behind the member `after` or else at the end.
 */
interface Place {
  readonly path: readonly string[]
  readonly names: readonly string[]
  readonly after: string | undefined
}

const newText = '{\n}\n'

/**
 * Saves changes. A missing file is made with mode 0600.
 * @param changes keys and their new values, `{'admin.user': 'ann'}`, which are checked as when loading
 * @throws Error that says what failed, why, and what to do; the file is unchanged then (see `editFile`)
 */
export function saveConfig(file: string, changes: Partial<Config>, steps?: FileSteps): void {
  editFile(file, (text) => editConfig(text, changes), steps)
}

/**
 * Returns the text with the changes in it.
 * @param text undefined for a new file
 * @throws Error when the text is not JSON object or contains a key twice, and when a change has an unknown key or an
 *   invalid value
 */
export function editConfig(text: string | undefined, changes: Partial<Config>): string {
  const { found, problems, unknown } = findEntries(changes)
  const wrong = problems[0] ?? unknown[0]
  if (wrong !== undefined) throw new Error(wrong.text)
  let edited = text ?? newText
  for (const { key, value } of found.values()) {
    const reading = readValue(configTable[key as keyof Config], value) // findEntries finds keys of the table alone
    if ('problem' in reading) throw new Error(`${key} ${reading.problem}`)
    edited = setValue(edited, key, value)
  }
  return edited
}

function setValue(text: string, key: string, value: unknown): string {
  const { value: before, root } = readJson(text)
  const { found, problems } = findEntries(before)
  if (problems[0] !== undefined) throw new Error(problems[0].text)
  const present = found.get(key)
  if (present === undefined) return insert(text, root, placeFor(root, key.split('.'), [...found.values()]), value)
  if (JSON.stringify(present.value) === JSON.stringify(value)) return text
  const { start, end } = nodeOf(root, present.path)
  return text.slice(0, start) + rendered(value) + text.slice(end)
}

function placeFor(root: JsonNode, names: readonly string[], found: readonly Entry[]): Place {
  const group = names.slice(0, -1).join('.')
  const sibling = found.findLast(({ key }) => key.slice(0, Math.max(0, key.lastIndexOf('.'))) === group)
  if (sibling === undefined) return placeInGroup(root, names)
  const after = sibling.path.at(-1) as string // the path of an entry ends with the entry's own name
  return { path: sibling.path.slice(0, -1), names: [names.slice(-after.split('.').length).join('.')], after }
}

/** The end of the innermost object that exists: of `server.tls`, else of `server`, else of the root. */
function placeInGroup(node: JsonNode, names: readonly string[], path: readonly string[] = []): Place {
  for (const member of node.members ?? []) {
    const length = member.name.split('.').length
    const within = length < names.length && member.name === names.slice(0, length).join('.')
    if (within) return placeInGroup(member.value, names.slice(length), [...path, member.name])
  }
  return { path, names, after: undefined }
}

function insert(text: string, root: JsonNode, place: Place, value: unknown): string {
  const object = nodeOf(root, place.path)
  const members = object.members ?? []
  const index = place.after === undefined ? members.length - 1 : members.findIndex(({ name }) => name === place.after)
  const member = members[index]
  const unit = /\n([ \t]+)"/.exec(text)?.[1] ?? '  '
  const lineEnd = text.includes('\r\n') ? '\r\n' : '\n'

  if (member === undefined) {
    const outer = text.includes('\n') ? lineEnd + indentation(text, object.start) : ''
    const inner = outer === '' ? '' : outer + unit
    const content = `{${inner}${nested(place.names, rendered(value), inner, unit, ': ')}${outer}}`
    return text.slice(0, object.start) + content + text.slice(object.end)
  }
  const previous = members[index - 1]
  const from = previous === undefined ? object.start + 1 : text.indexOf(',', previous.value.end) + 1
  const space = text.slice(from, member.start)
  const colon = text.slice(member.nameEnd, member.value.start)
  const separator = /\r?\n[ \t]*$/.exec(space)?.[0] ?? (space === '' && /\s/.test(colon) ? ' ' : space)
  const added = nested(place.names, rendered(value), separator, unit, colon)
  return `${text.slice(0, member.value.end)},${separator}${added}${text.slice(member.value.end)}`
}

/** Renders a member whose value is wrapped in an object for each name but the first; `separator` goes before it. */
function nested(names: readonly string[], value: string, separator: string, unit: string, colon: string): string {
  const [name, ...rest] = names
  const member = JSON.stringify(name) + colon
  if (rest.length === 0) return member + value
  const inner = separator.includes('\n') ? separator + unit : ''
  const outer = separator.includes('\n') ? separator : ''
  return `${member}{${inner}${nested(rest, value, inner, unit, colon)}${outer}}`
}

function rendered(value: unknown): string {
  return Array.isArray(value) ? `[${value.map((entry) => JSON.stringify(entry)).join(', ')}]` : JSON.stringify(value)
}

function indentation(text: string, offset: number): string {
  const line = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset)
  return line.slice(0, line.length - line.trimStart().length)
}

function nodeOf(root: JsonNode, path: readonly string[]): JsonNode {
  return nodeAt(root, path) as JsonNode // findEntries and placeFor have just come along this path
}
