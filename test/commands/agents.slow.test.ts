// Every command that the AGENTS.md of a new application names, in a new application.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { optionsOfTarget, root, runLauncher } from '../support/launch.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

test('every command of AGENTS.md works in a new application', async (t) => {
  const folder = join(temporaryFolder(), 'app')
  assert.equal((await runLauncher(t, ['init', folder], { cwd: root })).status, 0)
  const text = readFileSync(join(folder, 'AGENTS.md'), 'utf8')
  const section = /## Commands\n([^]*?)\n## /.exec(text)?.[1] ?? ''
  const commands = [...section.matchAll(/^- `([^`]+)`: /gm)].map(([, command = '']) => command)
  assert.equal(commands.length, 7)
  for (const command of commands) {
    if (command.endsWith(' docs')) await runUntilStopped(t, `${command} --port 0`, folder)
    else if (command === 'npm run dev') await runUntilStopped(t, `${command} -- --port 0`, folder)
    else {
      const { child, output } = run(t, command, folder)
      const [status] = (await once(child, 'close')) as [number]
      assert.equal(status, 0, `${command}: ${output()}`)
    }
  }
})

async function runUntilStopped(t: TestContext, command: string, cwd: string): Promise<void> {
  const { child, output } = run(t, command, cwd)
  const closed = once(child, 'close')
  await Promise.race([until(() => output().includes('listening on http://127.0.0.1:')), closed])
  assert.equal(child.exitCode, null, `${command}: ${output()}`)
  process.kill(-(child.pid as number), 'SIGTERM') // It has been spawned.
  await closed
}

/** Runs a command in a shell, in a process group of its own; `node` is the Node of the tests. */
function run(t: TestContext, command: string, cwd: string): { child: ReturnType<typeof spawn>; output: () => string } {
  const bin = join(temporaryFolder(), 'bin')
  mkdirSync(bin)
  symlinkSync(process.execPath, join(bin, 'node'))
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env
  const child = spawn('sh', ['-c', command], {
    cwd,
    detached: true,
    env: { ...env, NODE_OPTIONS: optionsOfTarget().join(' '), PATH: `${bin}${delimiter}${process.env['PATH']}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part: string) => (output += part))
  t.after(() => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), 'SIGKILL')
  })
  return { child, output: () => output }
}
