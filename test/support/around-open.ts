/** Changes the file system just before and just after a file is opened, as another process may. */
import fs from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import type { TestContext } from 'node:test'

/** Until the test ends, calls `before` ahead of each opening of a file by its path, and `after` once it is open. */
export function aroundOpen(t: TestContext, before: () => void, after: () => void = () => {}): void {
  const { open } = promises
  const { openSync, readFileSync } = fs
  const around = <T>(work: () => T): T => {
    before()
    try {
      return work()
    } finally {
      after()
    }
  }
  const mocks = [
    t.mock.method(fs, 'openSync', (...parameters: Parameters<typeof openSync>) => {
      return around(() => openSync(...parameters))
    }),
    t.mock.method(fs, 'readFileSync', (...[file, options]: Parameters<typeof readFileSync>) => {
      return typeof file === 'number' ? readFileSync(file, options) : around(() => readFileSync(file, options))
    }),
    t.mock.method(promises, 'open', async (...parameters: Parameters<typeof open>) => {
      before()
      try {
        return await open(...parameters)
      } finally {
        after()
      }
    }),
  ]
  syncBuiltinESMExports()
  t.after(() => {
    for (const { mock } of mocks) mock.restore()
    syncBuiltinESMExports()
  })
}

/** Until the test ends, hides what the system knows about open files, as on systems without `/proc`. */
export function withoutProc(t: TestContext): void {
  const { mock } = t.mock.method(fs, 'readlinkSync', (path: fs.PathLike) => {
    throw Object.assign(new Error(`ENOENT: no such file or directory, readlink '${String(path)}'`), { code: 'ENOENT' })
  })
  syncBuiltinESMExports()
  t.after(() => {
    mock.restore()
    syncBuiltinESMExports()
  })
}
