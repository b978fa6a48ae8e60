/**
 * Errors by cause: the ERROR and FATAL lines of the general log, grouped by their place in the source and their message
 * without its values. So a cause that fails a thousand requests is one entry with a count, and not a thousand lines.
 *
 * At most 200 groups are kept, of 1 MiB in total. The least recently seen group is dropped first.
 */
import { relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { copyOf, escapeControls } from './line.ts'
import { requestIdOf, type LogRecord } from './record.ts'

/** A list of frames in a stack, with the lines above it. */
export interface StackPart {
  /** The error, or what caused it; several lines if its message has them. */
  readonly title: string
  /** The application's frames, without `at`. */
  readonly own: readonly string[]
  /** The frames of the server, of packages and of Node. */
  readonly others: readonly string[]
}

/** Errors of one cause. */
export interface ErrorGroup {
  /** The file and line of the application that threw; the module of the log if no file is known. */
  readonly place: string
  /** The message, with `"…"` for quoted strings and `#` for numbers. */
  readonly message: string
  readonly count: number
  /** When it was first and last seen, in milliseconds since 1970. */
  readonly first_at: number
  readonly last_at: number
  /** The names of the last routes that failed with it; at most 5. */
  readonly routes: readonly string[]
  /** The ids of the last requests that failed with it; at most 5, the newest last. */
  readonly requests: readonly string[]
  /** The last stack: the message, and in each list of frames those of the application first. Empty without a stack. */
  readonly stack: string
  /** The number of errors in each of the last 60 minutes, the current one last. */
  readonly minutes: readonly number[]
}

/** A group while it is counted: with counts by minute since 1970. */
interface Counted extends Omit<ErrorGroup, 'minutes'> {
  readonly byMinute: ReadonlyMap<number, number>
}

const maxGroups = 200
/** The most memory of all groups, counted as two bytes per character plus overhead per group. */
const maxBytes = 2 ** 20
const objectBytes = 2048
const maxNames = 5
const maxMessageLength = 2000
const maxTextLength = 300
const maxStackLength = 4000
/** A message may contain what a client sent, so longer stacks are truncated and longer lines are not parsed. */
const readStackLength = 65_536
const readLineLength = 1000
const minuteMs = 60_000
const shownMinutes = 60

const serverUrl = new URL('..', import.meta.url)
/** The folder of the server itself, as URL path and as file path: frames may have either. */
const serverFolders = [serverUrl.pathname, fileURLToPath(serverUrl)]
const quoted = /(?<!\w)(["'`])(?:(?!\1).)*\1(?!\w)/g
const numbers = /\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b|\b[\da-f]{8,}\b|\d+/gi

/** Groups the errors of one process. */
export class ErrorGroups {
  /** By place and message, the least recently seen first. */
  readonly #groups = new Map<string, Counted>()
  #bytes = 0

  /** Counts a line of the log. Never throws. */
  add(record: LogRecord): void {
    const { timeMs, module, message, stack, request } = record
    const copy = (part: string | undefined): string[] => (part === undefined ? [] : [copyOf(part, maxTextLength)])
    const lines = stack === '' ? [] : stack.slice(0, readStackLength).split('\n')
    const place = placeOf(lines) ?? module
    const title = lines[0]?.trim() ?? ''
    const isValue = title === '' || /^["'`]/.test(title) // A thrown string is a value.
    const shown = withoutValues(isValue ? message : title)
    const key = `${place}\n${shown}`
    const before = this.#groups.get(key)
    const minute = Math.floor(timeMs / minuteMs)
    const byMinute = new Map([...(before?.byMinute ?? [])].filter(([at]) => at > minute - shownMinutes))
    byMinute.set(minute, (byMinute.get(minute) ?? 0) + 1)
    this.#delete(key)
    this.#set(key, {
      place,
      message: shown,
      count: (before?.count ?? 0) + 1,
      first_at: before?.first_at ?? timeMs,
      last_at: timeMs,
      routes: lastOf(before?.routes, ...copy(request?.routeName || undefined)),
      requests: lastOf(before?.requests, ...copy(requestIdOf(record))),
      stack: copyOf(ownFramesFirst(lines).join('\n'), maxStackLength),
      byMinute,
    })
  }

  /** Returns the groups, the most recently seen first. */
  list(nowMs: number): ErrorGroup[] {
    const first = Math.floor(nowMs / minuteMs) - shownMinutes + 1
    const groups = [...this.#groups.values()].reverse()
    return groups.map(({ byMinute, ...group }) => {
      const minutes = Array.from({ length: shownMinutes }, (_, at) => byMinute.get(first + at) ?? 0)
      return { ...group, minutes }
    })
  }

  /** Drops the groups that were not seen after a time, in milliseconds since 1970; by default all. */
  clear(beforeMs = Infinity): void {
    for (const [key, { last_at: lastMs }] of this.#groups) if (lastMs <= beforeMs) this.#delete(key)
  }

  #set(key: string, group: Counted): void {
    this.#groups.set(key, group)
    this.#bytes += bytesOf(group)
    while (this.#groups.size > maxGroups || this.#bytes > maxBytes) {
      this.#delete(this.#groups.keys().next().value as string) // There is at least this one.
    }
  }

  #delete(key: string): void {
    const group = this.#groups.get(key)
    if (group === undefined) return
    this.#groups.delete(key)
    this.#bytes -= bytesOf(group)
  }
}

/** Adds up the groups of several processes: the most recently seen first, at most 200. */
export function sumOfGroups(lists: readonly (readonly ErrorGroup[])[]): ErrorGroup[] {
  const sums = new Map<string, ErrorGroup>()
  for (const group of lists.flat().sort((a, b) => b.last_at - a.last_at)) {
    const key = `${group.place}\n${group.message}`
    const newer = sums.get(key)
    sums.set(key, newer === undefined ? group : sumOf(newer, group))
  }
  return [...sums.values()].slice(0, maxGroups)
}

function sumOf(newer: ErrorGroup, older: ErrorGroup): ErrorGroup {
  return {
    ...newer,
    count: newer.count + older.count,
    first_at: Math.min(newer.first_at, older.first_at),
    routes: lastOf(older.routes, ...newer.routes),
    requests: lastOf(older.requests, ...newer.requests),
    minutes: newer.minutes.map((count, at) => count + (older.minutes[at] ?? 0)),
  }
}

/** The number of errors in the last 60 minutes. */
export function lastHourOf(groups: readonly ErrorGroup[]): number {
  return groups.flatMap(({ minutes }) => minutes).reduce((sum, count) => sum + count, 0)
}

/** Splits the stack of a group into its lists of frames. Paths below the working directory are relative to it. */
export function partsOf(stack: string): StackPart[] {
  const here = `${pathToFileURL(process.cwd()).href}/`
  const parts: { title: string; own: string[]; others: string[] }[] = []
  for (const line of stack.split('\n')) {
    const text = line.trim()
    const part = parts.at(-1)
    if (part === undefined || (!isFrame(line) && part.own.length + part.others.length > 0)) {
      parts.push({ title: text, own: [], others: [] })
    } else if (isFrame(line)) {
      const frame = text.slice('at '.length).replace(here, '')
      if (isOwnFrame(line)) part.own.push(frame)
      else part.others.push(frame)
    } else part.title += `\n${text}`
  }
  return parts
}

/** The last distinct names. */
function lastOf(before: readonly string[] = [], ...more: readonly string[]): readonly string[] {
  return [...new Set([...before, ...more].reverse())].slice(0, maxNames).reverse()
}

function withoutValues(message: string): string {
  const beginning = message.slice(0, maxMessageLength)
  const shown = beginning.replace(quoted, '$1…$1').replace(numbers, '#')
  return copyOf(escapeControls(shown), maxTextLength)
}

/** The place of the first frame of the application. */
function placeOf(lines: readonly string[]): string | undefined {
  const { file, line } = frameIn(lines.find(isOwnFrame) ?? '') ?? {}
  if (file === undefined) return undefined
  const near = relative(process.cwd(), file)
  return copyOf(`${near.startsWith('..') ? file : near}:${line}`.slice(-maxTextLength), maxTextLength)
}

function isFrame(line: string): boolean {
  return line.startsWith('    at ')
}

/** Whether a line is a frame of the application: neither of the server nor of Node. */
function isOwnFrame(line: string): boolean {
  const file = frameIn(line)?.file
  if (file === undefined || file.includes('/node_modules/')) return false
  return serverFolders.every((folder) => !file.startsWith(folder))
}

/** The path of a frame, without the query of a reloaded module, and its line; undefined if it is not a frame. */
function frameIn(text: string): { readonly file: string; readonly line: string } | undefined {
  if (!isFrame(text) || text.length > readLineLength) return undefined
  const place = text.endsWith(')') ? text.slice(text.lastIndexOf('(') + 1, -1) : text.slice('    at '.length)
  const position = /:(\d{1,9}):\d{1,9}$/.exec(place)
  const [file = ''] = place.slice(0, position?.index ?? 0).replace(/^file:\/\//, '').split('?', 1)
  return file.startsWith('/') ? { file, line: position?.[1] ?? '' } : undefined
}

/** The lines with the application's frames first in each list of frames. */
function ownFramesFirst(lines: readonly string[]): string[] {
  const sorted: string[] = []
  const others: string[] = []
  for (const line of lines) {
    if (isFrame(line) && !isOwnFrame(line)) others.push(line)
    else {
      if (!isFrame(line)) sorted.push(...others.splice(0))
      sorted.push(line)
    }
  }
  return [...sorted, ...others]
}

function bytesOf({ place, message, stack, routes, requests }: Counted): number {
  return objectBytes + 2 * [place, message, stack, ...routes, ...requests].join('').length
}
