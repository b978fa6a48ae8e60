// Runs the test files of one room in this process: starting a process costs more than most files.
// Each file is its own suite, so that a hook at the top of a file applies only to that file.
import { AsyncResource } from 'node:async_hooks'
import { rmSync, writeFileSync } from 'node:fs'
import { after, before, describe } from 'node:test'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'

/** What keeps a process for longer behind its last test was left open. */
const graceMs = 5000

/**
 * Runs test files one after the other.
 *
 * @param {readonly string[]} files paths from the working directory
 * @param {{ noteFile: string, timeoutMs: number, roomTimeoutMs: number }} options
 *   `noteFile`: holds the path of the file that is being run, and is removed at the end, so that a process which was ended
 *   from outside leaves the name of the file that hung.
 *   `timeoutMs`: the longest that one file, and so one test, may take.
 *   `roomTimeoutMs`: after which the process is killed
 */
export function runRoom(files, { noteFile, timeoutMs, roomTimeoutMs }) {
  // A loop without an end blocks every timer and signal handler of this thread, but not those of another.
  new Worker(`setTimeout(() => process.kill(process.pid, 'SIGKILL'), ${roomTimeoutMs})`, { eval: true }).unref()
  const note = (file) => writeFileSync(noteFile, file)
  let earlier = Promise.resolve()
  for (const file of files) {
    describe(file, { timeout: timeoutMs }, () => {
      before(() => note(file))
      const load = AsyncResource.bind(() => import(pathToFileURL(file).href))
      const loaded = earlier.then(() => {
        note(file)
        return load()
      })
      earlier = loaded.catch(() => {}) // The suite reports it.
      // No test runs before the last file is loaded: what a file imports from Node while a test mocks it stays the mock.
      return loaded.finally(() => earlier)
    })
  }
  after(() => {
    // As after a test that failed before it closed what it had opened.
    const end = () => {
      const open = [...new Set(process.getActiveResourcesInfo())].join(', ')
      note(`something is still open after the tests of ${files.join(', ')}: ${open}`)
      process.exit(13)
    }
    setTimeout(end, graceMs).unref()
  })
  process.on('exit', (status) => {
    if (status !== 13) rmSync(noteFile, { force: true }) // 13: something is awaited that never comes.
  })
}
