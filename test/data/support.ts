import { once } from 'node:events'
import { spawn, type ChildProcess } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Database } from '../../lib/data/database.ts'
import { optionsOfSources } from '../support/launch.ts'
import { keepingLogger } from '../support/log-lines.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** An open database of a test, and what it logged. */
export interface TestDatabase {
  readonly database: Database
  readonly folder: string
  readonly lines: string[]
}

/** Opens a database, which is closed when the test ends. */
export function openTest(t: TestContext, folder = temporaryFolder(), sync: 'normal' | 'full' = 'normal'): TestDatabase {
  const lines: string[] = []
  const database = Database.open({ folder, sync, log: keepingLogger((line) => lines.push(line)) })
  t.after(() => database.close())
  return { database, folder, lines }
}

/** Adds a job, whose data may fill pages. Returns its id. */
export function addJob(database: Database, name: string, data = ''): number {
  const sql = 'INSERT INTO jobs (name, state, due, tries, ends, data, created) VALUES (?, 0, 0, 0, 0, ?, 0)'
  return database.prepare(sql).run(name, data).lastInsertRowid
}

/** The names of the jobs in the order of their ids. */
export function jobNames(database: Database): unknown[] {
  return database.prepare('SELECT name FROM jobs ORDER BY id').all().map(({ name }) => name)
}

/** The mode of a file of the folder, in octal. */
export function modeOf(folder: string, name = ''): string {
  return (statSync(join(folder, name)).mode & 0o777).toString(8)
}

/** Stops the clock that limits how long a transaction takes writes, so that all of a turn share one on a busy machine. */
export function stopClock(t: TestContext): void {
  const nowMs = performance.now()
  t.mock.method(performance, 'now', () => nowMs)
}

/** Makes the next writes fail as on a full disk, as long as the file may not grow. */
export function limitPages(database: Database, pages: number): void {
  database.prepare(`PRAGMA max_page_count = ${pages}`).get()
}

/** A process that has the database of a folder open, and adds jobs until it is killed. */
export interface Holder {
  readonly child: ChildProcess
  readonly ended: Promise<unknown>
  stderr(): string
}

/** Starts a process that opens the database. Resolves when a first job is committed. */
export async function startHolder(t: TestContext, folder: string): Promise<Holder> {
  const program = fileURLToPath(new URL('holder.ts', import.meta.url))
  const target = process.env['SVC_TEST_TARGET'] === 'dist' ? ['--import', './test/support/dist-target.js'] : []
  const child = spawn(process.execPath, [...optionsOfSources(), ...target, program, folder], { stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const ended = once(child, 'close')
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  await Promise.race([once(child.stdout, 'data'), ended.then(() => Promise.reject(new Error(`It ended: ${stderr}`)))])
  return { child, ended, stderr: () => stderr }
}
