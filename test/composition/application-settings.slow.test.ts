import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeFiles } from '../support/application.ts'
import { applicationFolder } from '../support/application-folder.ts'
import { launch } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'

test('several processes have the settings that the first one read, also a process started later, frozen and without prototype', async (t) => {
  const settings = { mail: { url: { env: 'SVC_TEST_MAIL' }, file: { file: 'secret' } } }
  const cwd = applicationFolder(
    {
      'home.mjs': `export default ({ settings: { mail } }) => {
        return { frozen: Object.isFrozen(mail), inherits: 'toString' in mail, mail, pid: process.pid }
      }`,
      secret: 'one\n',
    },
    { 'server.processes': 2, settings },
  )
  const launched = launch(t, [], { cwd, env: { SVC_TEST_MAIL: 'smtp://relay' } })
  const url = await launched.listening()
  writeFiles(cwd, { secret: 'two' })
  const seen = new Map<number, unknown>()
  const ask = async (): Promise<void> => {
    const { pid, ...rest } = (await request(url)).json() as { pid: number }
    seen.set(pid, rest)
  }
  await until(() => ask().then(() => seen.size === 2))
  process.kill([...seen.keys()][0] as number, 'SIGKILL')
  await until(() => ask().then(() => seen.size === 3, () => false))
  const expected = { frozen: true, inherits: false, mail: { url: 'smtp://relay', file: 'one' } }
  assert.deepEqual([...seen.values()], [expected, expected, expected])
  launched.child.kill('SIGTERM')
  assert.equal(await launched.ended, 0)
})
