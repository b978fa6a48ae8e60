/**
 * A line of the general log as a record, and its two forms: text and JSON.
 *
 * As text, a line about a request begins with its method, path and route; the fields of the application follow the
 * message as ` key=value`, and the request id comes last, as ` [id]`. As JSON, each of these is a member.
 */
import { hostname } from 'node:os'
import type { LogDetails, LoggedRequest } from '../base/ports.ts'
import { isError, textOf } from '../base/reason.ts'
import type { Config } from '../config/table.ts'
import { label } from '../http/label.ts'
import { createJsonClock, createTextClock, escapeControls, escapeInJson, jsonString } from './line.ts'

/** The levels, lowest first. */
export const levels = ['debug', 'info', 'warn', 'error', 'fatal'] as const

/** The name of a level. */
export type Level = (typeof levels)[number]

/** A line as a record. */
export interface LogRecord extends LogDetails {
  /** In milliseconds since 1970. */
  readonly timeMs: number
  readonly level: Level
  readonly module: string
  readonly message: string
  /** The lines for a thrown value, as `stackLines` makes them, joined by line ends; '' if there is none. */
  readonly stack: string
}

/** The process and node that the lines of a log come from, if there are several. */
export interface LogOrigin {
  /** The number of the process. */
  readonly process?: number
  /** The name of the node. */
  readonly node?: string
}

/** Returns the origin of the lines of a process. @param process its number, if there are several */
export function originOf(config: Pick<Config, 'shared.url' | 'server.port'>, process?: number): LogOrigin {
  return {
    ...(process !== undefined && { process }),
    ...(config['shared.url'] !== '' && { node: nodeName(config['server.port']) }),
  }
}

/** The name of a node: `HOSTNAME:PORT`; `HOSTNAME` for port 0, which is unknown. Not necessarily unique. */
export function nodeName(port: number): string {
  return port === 0 ? hostname() : `${hostname()}:${port}`
}

/** Renders a record as one or more lines, including the last line end. */
export type RenderRecord = (record: LogRecord) => string

const warnAt = levels.indexOf('warn')
const reservedNames: ReadonlySet<string> = new Set([
  'time',
  'level',
  'module',
  'message',
  'request_id',
  'route',
  'method',
  'path',
  'status',
  'duration_ms',
  'error',
  'process',
  'node',
])
const needsQuotes = /[\s"'\x00-\x1f\x7f-\x9f\u2028\u2029]/

/**
 * The id of the request that a record is about. From WARN up each record has one: it is generated if necessary, and
 * returned to the client. Below WARN, only an existing id is shown.
 */
export function requestIdOf({ level, request }: LogRecord): string | undefined {
  return levels.indexOf(level) < warnAt ? request?.idToSend : request?.id
}

/** Prepares the text form for a level and a module: `[time] [LEVEL] [module] message`. The stack follows. */
export function createTextForm(): (level: Level, module: string) => RenderRecord {
  const clock = createTextClock()
  return (level, module) => {
    const head = `] [${level.toUpperCase().padEnd(5)}] [${escapeControls(module)}] `
    return (record) => {
      const line = `[${clock(record.timeMs)}${head}${textOfRecord(record)}\n`
      return record.stack === '' ? line : `${line}${record.stack}\n`
    }
  }
}

/** The text of a record without time, level, module and stack. Has no control characters. */
export function textOfRecord(record: LogRecord): string {
  const { message, request, isLabelled = false, fields } = record
  const text = escapeControls(isLabelled && request !== undefined ? `${label(request)}: ${message}` : message)
  if (request === undefined && fields === undefined) return text
  const pairs = fieldsOf(fields).map(([name, value]) => ` ${word(name)}=${asText(value)}`)
  const id = requestIdOf(record)
  return `${text}${pairs.join('')}${id === undefined ? '' : ` [${id}]`}`
}

/** Prepares the JSON form for a level and a module: one object per line. */
export function createJsonForm(origin: LogOrigin): (level: Level, module: string) => RenderRecord {
  const clock = createJsonClock()
  const tail = Object.entries(origin).map(([name, value]) => `,"${name}":${JSON.stringify(value)}`)
  return (level, module) => {
    const head = `","level":"${level}","module":${jsonString(module)},"message":`
    return (record) => {
      const { timeMs, message, status, durationMs, stack } = record
      const members = [
        ...membersOf(record.request, requestIdOf(record)),
        status === undefined ? '' : `,"status":${status}`,
        durationMs === undefined ? '' : `,"duration_ms":${durationMs.toFixed(3)}`,
        stack === '' ? '' : `,"error":${errorOf(record)}`,
        ...tail,
        ...fieldsOf(record.fields).map(([name, value]) => `,${jsonString(name)}:${asJson(value)}`),
      ]
      return `{"time":"${clock(timeMs)}${head}${jsonString(message)}${members.join('')}}\n`
    }
  }
}

function membersOf(request: LoggedRequest | undefined, id: string | undefined): string[] {
  if (request === undefined) return []
  const { routeName, method, path } = request
  const members = { request_id: id, route: routeName === '' ? undefined : routeName, method, path }
  const known = Object.entries(members).filter((member): member is [string, string] => member[1] !== undefined)
  return known.map(([name, value]) => `,"${name}":${jsonString(value)}`)
}

function errorOf({ thrown, stack }: LogRecord): string {
  const { name, message } = nameAndMessage(thrown)
  return `{"name":${jsonString(name)},"message":${jsonString(message)},"stack":${jsonString(stack)}}`
}

/** Anything can be thrown, and a getter of an error may throw. */
function nameAndMessage(thrown: unknown): { readonly name: string; readonly message: string } {
  try {
    if (isError(thrown)) return { name: String(thrown.name), message: String(thrown.message) }
  } catch {
    return { name: 'Error', message: '' } // The stack has what could be read.
  }
  return { name: typeof thrown, message: textOf(thrown) }
}

/** The fields of the application. Reserved names get a `_` prefix. Unreadable fields are left out. */
function fieldsOf(fields: LogDetails['fields']): (readonly [string, unknown])[] {
  if (fields === undefined) return []
  const found = new Map<string, unknown>()
  try {
    for (const [name, value] of Object.entries(fields)) if (value !== undefined) found.set(name, value)
  } catch {
    // A getter threw: the fields before it are kept.
  }
  return [...found].map(([name, value]) => {
    let free = name
    while (reservedNames.has(free) || (free !== name && found.has(free))) free = `_${free}`
    return [free, value] as const
  })
}

/** A value as JSON; values that JSON cannot represent (an error, a Map, NaN, a cyclic object) as a string. */
function asJson(value: unknown): string {
  if (typeof value === 'string') return jsonString(value)
  if (isError(value)) return jsonString(titleOfError(value))
  try {
    const json: unknown = isPlain(value) ? JSON.stringify(value) : undefined
    if (typeof json === 'string') return escapeInJson(json)
  } catch {
    // It is cyclic, or contains a bigint, or a getter threw.
  }
  return jsonString(textOf(value))
}

function titleOfError(error: Error): string {
  const { name, message } = nameAndMessage(error)
  return message === '' ? name : `${name}: ${message}`
}

/** Whether JSON represents the value faithfully. */
function isPlain(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || 'toJSON' in value
}

/** A value for the text form: a string as it is, anything else as JSON; in quotes unless it is one word. */
function asText(value: unknown): string {
  const json = asJson(value)
  return word(json.startsWith('"') ? String(JSON.parse(json)) : json)
}

function word(text: string): string {
  return needsQuotes.test(text) ? jsonString(text) : text
}
