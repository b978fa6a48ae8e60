/** What a start logs about the previous run, and about the program that has started it. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { testKey, writeFiles } from '../support/application.ts'
import { launch, optionsOfTarget, root, runLauncher } from '../support/launch.ts'
import { listen } from '../support/listen.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const ill = /\[WARN \] \[server\] the last run, process \d+ since \S+, did not stop cleanly: /

function folderWith(config: object): string {
  const folder = temporaryFolder()
  writeFiles(folder, { 'svc.json': { app_key: testKey, 'server.port': 0, ...config }, 'routes/a.json': [] })
  return folder
}

for (const processes of [1, 2]) {
  test(`logs a line after a killed run, and none after a stopped one: ${processes} processes`, async (t) => {
    const cwd = folderWith({ 'server.processes': processes })
    let before: NodeJS.Signals | undefined
    for (const signal of ['SIGTERM', 'SIGKILL', 'SIGTERM', 'SIGTERM'] as const) {
      const server = launch(t, [], { cwd })
      await server.listening()
      if (before === 'SIGKILL') assert.match(server.stdout(), ill)
      else assert.doesNotMatch(server.stdout(), ill)
      server.child.kill(signal)
      await server.ended
      before = signal
    }
  })

  test(`reports a port in use with the reason and a remedy, without a stack: ${processes} processes`, async (t) => {
    const port = await listen(t, createServer())
    const cwd = folderWith({ 'server.processes': processes, 'server.port': port })
    const { status, stdout } = await runLauncher(t, [], { cwd })
    assert.equal(status, 1)
    assert.match(stdout, /\[FATAL\] \[server\] Cannot listen on 127\.0\.0\.1, port \d+: .*EADDRINUSE.*; another program has this port/)
    assert.doesNotMatch(stdout, /^ {4}/m)
  })
}

/** A program that runs the server as workers of its cluster, as pm2 does. */
const cluster = (launcher: string, env: object): string => `
  import cluster from 'node:cluster'
  cluster.setupPrimary({ exec: ${JSON.stringify(launcher)}, execArgv: ${JSON.stringify(optionsOfTarget())} })
  let ended = 0
  cluster.on('exit', () => (ended += 1) === 2 && process.exit())
  for (const _ of [1, 2]) cluster.fork(${JSON.stringify(env)})
  process.on('SIGTERM', () => Object.values(cluster.workers).forEach((worker) => worker.kill()))
`

test('a server run twice in a cluster by another program warns; a single one does not; several of each are refused', async (t) => {
  const warning = /\[WARN \] \[config\] another program \(pm2 -i\?\) runs this server as a worker of node:cluster: /
  for (const [config, env, warns] of [[{}, {}, true], [{}, { instances: '1' }, false]] as const) {
    const cwd = folderWith(config)
    writeFiles(cwd, { 'cluster.mjs': cluster(join(root, 'bin/svc.js'), env) })
    const both = launch(t, [], { cwd, launcher: join(cwd, 'cluster.mjs') })
    await until(() => [...both.stdout().matchAll(/listening on /g)].length === 2)
    assert.equal(warning.test(both.stdout()), warns)
    both.child.kill('SIGTERM')
    await both.ended
  }
  const cwd = folderWith({ 'server.processes': 2 })
  writeFiles(cwd, { 'cluster.mjs': cluster(join(root, 'bin/svc.js'), {}) })
  const { stderr } = await runLauncher(t, [], { cwd, launcher: join(cwd, 'cluster.mjs') })
  assert.match(stderr, /^Cannot load .*svc\.json: server\.processes must be 1 in a worker of node:cluster: .*\(line 1\)$/m)
})
