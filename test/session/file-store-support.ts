import { createHash } from 'node:crypto'
import * as promises from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createFileStore, type SessionFiles } from '../../lib/session/file-store.ts'
import type { Fields } from '../../lib/session/store.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** A store in a folder that is not there yet. Its fields hold any text, unless the last argument says what is wrong. */
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
  const store = createFileStore({ folder, problemOf, onProblem, now, files })
  t.after(() => store.close())
  const fileOf = (id: string): string => join(folder, `${createHash('sha256').update(id).digest('hex')}.json`)
  return { store, folder, problems, fileOf, advance: (ms: number) => void (aheadMs += ms) }
}

/** The real file system, whose calls are noted by name. */
export function recording(calls: string[]): SessionFiles {
  return wrapped((call) => {
    calls.push(call)
  })
}

/** The real file system, of which the calls that are named, alone or with their path, fail with a code. */
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
