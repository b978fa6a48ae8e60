import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as promises from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { FileStore, type SessionFiles } from '../../lib/session-stores/file-store.ts'
import type { Fields, SessionStore } from '../../lib/session/store.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { contents, fields, id } from './store-values.ts'

/** A store in a folder that does not exist yet. Its fields hold any text, unless the last argument returns a problem. */
export function openFileStore(
  t: Pick<TestContext, 'after'>,
  files: SessionFiles = promises,
  folder = join(temporaryFolder(), 'a', 'sessions'),
  problemOf: (fields: Fields) => string | undefined = () => undefined,
) {
  const problems: string[] = []
  let aheadMs = 0
  const now = (): number => Date.now() + aheadMs
  const onProblem = (message: string): unknown => problems.push(message)
  const store = new FileStore({ folder, problemOf, onProblem, now, files })
  t.after(() => store.close())
  const fileOf = (id: string): string => join(folder, `${createHash('sha256').update(id).digest('hex')}.json`)
  return { store, folder, problems, fileOf, advance: (ms: number) => void (aheadMs += ms) }
}

/** A machine whose clock is set by the test. */
export interface Machine {
  readonly folder: string
  /** Opens a store on the one folder of the machine, as each process does. */
  open(): SessionStore
  /** Lets time pass. */
  pass(ms: number): void
  /** Sets the wall clock forward or back. */
  jump(ms: number): void
  /** Returns the number of files in the folder. */
  files(): number
}

/** Makes a machine. The real file system records the real time of each change; here it is the machine's time. */
export function machine(t: Pick<TestContext, 'after'>): Machine {
  const folder = join(temporaryFolder(), 'sessions')
  const changed = new Map<string, number>()
  let passedMs = 0
  let calendarMs = 1_900_000_000_000 // A whole second, so that no file system rounds it.
  const now = (): number => calendarMs
  const noted = async <Result>(path: string, work: Promise<Result>): Promise<Result> => {
    const result = await work
    changed.set(path, now())
    return result
  }
  const files: SessionFiles = {
    ...promises,
    lstat: async (path) => {
      const found = await promises.lstat(path)
      return { isFile: () => found.isFile(), mtimeMs: found.mtimeMs, ctimeMs: changed.get(path) ?? found.ctimeMs }
    },
    writeFile: (path, text, options) => noted(path, promises.writeFile(path, text, options)),
    utimes: (path, atimeS, mtimeS) => noted(path, promises.utimes(path, atimeS, mtimeS)),
    rename: (from, to) => noted(to, promises.rename(from, to)),
  }
  const open = (): SessionStore => {
    const options = { folder, now, steadyNow: () => passedMs, files, problemOf: () => undefined, onProblem: assert.fail }
    const store = new FileStore(options)
    t.after(() => store.close())
    return store
  }
  const pass = (ms: number): void => {
    passedMs += ms
    calendarMs += ms
  }
  return { folder, open, pass, jump: (ms) => void (calendarMs += ms), files: () => fs.readdirSync(folder).length }
}

/** The real file system, whose calls are recorded by name. */
export function recording(calls: string[]): SessionFiles {
  return wrapped((call) => {
    calls.push(call)
  })
}

/** The real file system, in which the named calls, optionally with their path, fail with a code. */
export function faulty(failing: ReadonlyMap<string, string>): SessionFiles {
  return wrapped((call, path) => {
    const code = failing.get(call) ?? failing.get(`${call} ${path}`)
    if (code !== undefined) throw Object.assign(new Error(`${code}: refused by the test, ${call}`), { code })
  })
}

function wrapped(before: (call: string, path: string) => void): SessionFiles {
  const through =
    <Rest extends unknown[], Result>(call: string, work: (path: string, ...rest: Rest) => Promise<Result>) =>
    async (path: string, ...rest: Rest): Promise<Result> => {
      before(call, path)
      return work(path, ...rest)
    }
  return {
    lstat: through('lstat', (path) => promises.lstat(path)),
    readFile: through('readFile', (path) => promises.readFile(path)),
    writeFile: through('writeFile', promises.writeFile),
    utimes: through('utimes', promises.utimes),
    rename: through('rename', promises.rename),
    unlink: through('unlink', promises.unlink),
    mkdir: through('mkdir', promises.mkdir),
    opendir: through('opendir', (path) => promises.opendir(path)),
  }
}

/** Damages the file of a session in each round: no read fails, and none returns an invalid session. */
export async function checkDamagedFiles(t: Pick<TestContext, 'after'>, rounds: number): Promise<void> {
  const { store, fileOf } = openFileStore(t)
  await store.create(id(1), fields({ 'key:a': '1', 'flash:f': '{"x":"y"}' }), 60_000)
  const good = fs.readFileSync(fileOf(id(1)))
  const random = new Seeded(4)
  for (let round = 0; round < rounds; round++) {
    const bytes = Buffer.from(good)
    const at = random.integer(bytes.length)
    const kind = random.integer(3)
    if (kind === 0) bytes[at] = random.integer(256)
    const content = kind === 1 ? bytes.subarray(0, at) : kind === 2 ? random.bytes(at) : bytes
    damage(fileOf(id(1)), content)
    for (const [name, text] of (await store.read(id(1)))?.fields ?? []) {
      assert.deepEqual([typeof name, typeof text], ['string', 'string'])
    }
  }
  damage(fileOf(id(1)), good)
  assert.deepEqual(await contents(store, id(1)), { 'key:a': '1', 'flash:f': '{"x":"y"}' })
}

/** Replaces the content of a file; its times stay. */
export function damage(file: string, content: string | Uint8Array): void {
  const { atime, mtime } = fs.statSync(file)
  fs.writeFileSync(file, content)
  fs.utimesSync(file, atime, mtime)
}
