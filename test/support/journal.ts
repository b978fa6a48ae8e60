/** A server whose console is the journal: what it takes for it is a file here. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { applicationFolder } from './application-folder.ts'
import { optionsOfTarget, root } from './launch.ts'
import { request } from './request.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './until.ts'

/** Checks that the journal gets the lines of a server with priorities, and the file with times. */
export async function assertJournalLines(t: TestContext, processes: number): Promise<void> {
  const cwd = applicationFolder(
    {
      'routes/fails.json': [{ name: 'fails', url: '/fails', action: 'fails.mjs' }],
      'fails.mjs': "export default () => { throw new Error('broken') }",
    },
    { 'server.processes': processes },
  )
  const file = join(temporaryFolder(), 'console')
  const fd = openSync(file, 'a')
  const { dev, ino } = fstatSync(fd)
  const env = { ...process.env, JOURNAL_STREAM: `${dev}:${ino}` }
  const child = spawn(process.execPath, [...optionsOfTarget(), join(root, 'bin/svc.js')], { cwd, env, stdio: ['ignore', fd, fd] })
  t.after(() => child.kill('SIGKILL'))
  closeSync(fd)
  const console = (): string => readFileSync(file, 'utf8')
  await until(() => console().includes('listening on '))
  const url = /listening on (\S+)/.exec(console())?.[1] ?? ''
  assert.equal((await request(`${url}/fails`)).status, 500)
  await until(() => console().includes('broken'))
  child.kill('SIGTERM')
  await once(child, 'close')
  const lines = console().trimEnd().split('\n')
  for (const line of lines) assert.match(line, /^<[3467]>(?:\[[A-Z]+ *\] \[\w+\] |    )/)
  assert.ok(lines.some((line) => /^<6>\[INFO \] \[server\] listening on /.test(line)))
  const at = lines.findIndex((line) => /^<3>\[ERROR\] \[error\] GET \/fails \(fails\): broken/.test(line))
  assert.match(lines[at + 1] ?? '', /^<3>    /)
  const logged = readFileSync(join(cwd, '.logs/svc.log'), 'utf8')
  assert.match(logged, /^\[\d{4}-\d\d-\d\d [\d:.]+\] \[ERROR\] \[error\] GET \/fails/m)
  assert.doesNotMatch(logged, /^</m)
}
