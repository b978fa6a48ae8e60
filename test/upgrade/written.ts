/**
 * What earlier versions wrote, in a folder each: `2026-11-22` (commit 23d7351) and `2026-11-27` (commit 96b61e4) of the main
 * branch, and `0.9.0` (commit c1b5fd2). Each server had a route `added` at run time and one that was `kept`, a switch that
 * was off, a session of Ada, and an event in the channel `news` and in the queue `jobs`, kept for 3e9 seconds.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, utimesSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The versions, oldest first. */
export const versions = ['2026-11-22', '2026-11-27', '0.9.0'] as const

/** A key of the engine, as `redis-cli --json` showed it. */
export type EngineKey =
  | { readonly type: 'hash'; readonly content: Readonly<Record<string, string>> }
  | { readonly type: 'stream'; readonly content: readonly (readonly [id: string, fields: readonly string[]])[] }
  | { readonly type: 'list'; readonly content: readonly string[] }
  | { readonly type: 'string'; readonly content: string }

/** `written.json` of a version. */
export interface Written {
  readonly app_key: string
  /** The cookie of the session in the engine. */
  readonly session: string
  /** The cookie of the session in a file. */
  readonly session_in_file: string
  readonly keys: Readonly<Record<string, EngineKey>>
}

const here = dirname(fileURLToPath(import.meta.url))

export function readWritten(version: string): Written {
  return JSON.parse(readFile(version, 'written.json')) as Written
}

/** Returns a file of a version. */
export function readFile(version: string, name: string): string {
  return readFileSync(join(here, version, name), 'utf8')
}

/** Puts the files of a version into the folder of an application, with an hour to live for its sessions. */
export function putFiles(version: string, folder: string): { readonly hasEvents: boolean } {
  const from = join(here, version)
  for (const name of ['routes', '.cached']) mkdirSync(join(folder, name), { recursive: true })
  cpSync(join(from, 'admin.json'), join(folder, 'routes/admin.json'))
  cpSync(join(from, 'sessions'), join(folder, 'sessions'), { recursive: true })
  const end = Date.now() / 1000 + 3600
  for (const name of readdirSync(join(folder, 'sessions'))) utimesSync(join(folder, 'sessions', name), end, end)
  const hasEvents = existsSync(join(from, 'events'))
  if (hasEvents) cpSync(join(from, 'events'), join(folder, '.cached/events'))
  return { hasEvents }
}

/** The application of all versions. */
export const upgradedFiles = {
  'routes/a.json': [
    { name: 'user', url: '/user', action: 'a.mjs@user', middleware: 'SVC_MwSession' },
    { name: 'news', url: '/news', action: 'a.mjs@news' },
    { name: 'job', url: '/job', action: 'a.mjs@job' },
  ],
  'a.mjs': `
    export const same = () => 'same'
    export const user = (ctx) => ({ user: ctx.session.get('user', null), list: ctx.session.get('list', null) })
    export const news = (ctx) => ctx.longPoll(ctx.channel('news', { age_s: 3e9 }), { timeout_s: 0 })
    export const job = (ctx) => ctx.longPoll(ctx.queue('jobs', { age_s: 3e9 }), { timeout_s: 0 })`,
}

/** What the session of each says. */
export const user = { user: 'Ada', list: [1, { a: null }] }
