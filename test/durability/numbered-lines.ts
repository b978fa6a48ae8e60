/**
 * An application that writes numbered lines into its logs and can be told to lose its disk or to crash, and what is found
 * of them on disk.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { withoutNode } from '../support/node-warnings.ts'
import { request } from '../support/request.ts'
import type { Files } from '../support/application.ts'

/** What the server itself says of its logs. */
export interface LogCounts {
  readonly general: { readonly written: number; readonly lost: number }
  readonly access: { readonly written: number; readonly lost: number }
  readonly warnings: readonly string[]
}

/** What is on disk of the numbered lines of one log. */
export interface Found {
  /** The numbers, file after file, in the order of the files. */
  readonly numbers: readonly number[]
  readonly files: number
  /** All lines, those without a number too; one without its end counts as well. */
  readonly lines: number
}

const action = `import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
const { writeSync } = fs
let room = Infinity
fs.writeSync = (fd, bytes, offset, length) => {
  if (room === 0) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  const count = writeSync(fd, bytes, offset, Math.min(length, room))
  room -= count
  return count
}
syncBuiltinESMExports()
const padding = 'x'.repeat(100)
/** Lines from one number on, one turn of the event loop after so many. */
export const lines = async ({ log, query }) => {
  const from = Number(query.get('from'))
  const count = Number(query.get('count'))
  for (let number = from; number < from + count; number += 1) {
    log(\`n=\${number} \${padding}\`)
    if (number % 100 === 99) await new Promise(setImmediate)
  }
  return { ok: true }
}
export const one = ({ log, params }) => {
  log(\`n=\${params.number} \${padding}\`)
  return { ok: true }
}
/** How many bytes the disk still takes; negative: as many as come. */
export const disk = ({ query }) => {
  room = Number(query.get('room'))
  if (room < 0) room = Infinity
  return { ok: true }
}
export const crash = ({ log, params }) => {
  setImmediate(() => {
    log(\`n=\${params.number} \${padding}\`)
    throw new Error('nobody catches this')
  })
  return { ok: true }
}
`

const routes = [
  { name: 'lines', url: '/lines', action: 'numbers.mjs@lines' },
  { name: 'one', url: '/one/:number', action: 'numbers.mjs@one' },
  { name: 'disk', url: '/disk', action: 'numbers.mjs@disk' },
  { name: 'crash', url: '/crash/:number', action: 'numbers.mjs@crash' },
]

/** The files of the application: rotation at 1 MiB, no sign-in. */
export const numberedLines: Files = {
  'svc.json': {
    app: { env: 'dev' },
    app_key: 'test',
    server: { port: 0 },
    log: { max_size_mb: 1 },
  },
  'routes/numbers.json': routes,
  'numbers.mjs': action,
}

/** Asks the server for its counts. */
export async function logCounts(url: string): Promise<LogCounts> {
  const status = (await request(`${url}/svc-status`)).json() as {
    readonly log: LogCounts['general']
    readonly access_log: LogCounts['access']
    readonly warnings: readonly string[]
  }
  return { general: status.log, access: status.access_log, warnings: withoutNode(status.warnings) }
}

/**
 * Reads all files of one log. Each number may be there once; they must grow from line to line and from file to file.
 * @param log `general` for `svc.log`, what was rotated and what was moved away; `access` likewise
 */
export function readNumbers(folder: string, log: 'general' | 'access'): Found {
  const names = readdirSync(folder).filter((name) => name.startsWith(log === 'access' ? 'access' : 'svc'))
  const pattern = log === 'access' ? /"GET \/one\/(\d+) HTTP/ : /\[app\] n=(\d+) x{100}$/
  const files = names.map((name) => {
    const text = readFileSync(join(folder, name), 'utf8')
    const lines = text.split('\n').filter((line) => line !== '')
    const numbers = lines.flatMap((line) => pattern.exec(line)?.[1] ?? []).map(Number)
    return { lines: lines.length, numbers }
  })
  files.sort((a, b) => (a.numbers[0] ?? Infinity) - (b.numbers[0] ?? Infinity))
  const numbers = files.flatMap((file) => file.numbers)
  numbers.forEach((number, at) => {
    const before = numbers[at - 1] ?? -1
    assert.ok(number > before, `${log}: line ${number} is there after ${before}`)
  })
  return { numbers, files: files.length, lines: files.reduce((sum, file) => sum + file.lines, 0) }
}

/** The numbers of a range that were not found. */
export function missing(found: Found, from: number, to: number): number[] {
  const there = new Set(found.numbers)
  return Array.from({ length: to - from }, (_, at) => from + at).filter((number) => !there.has(number))
}
