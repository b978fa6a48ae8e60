import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { startClient } from '../support/keep-alive-client.ts'
import { serviceManager, type ServiceManager } from '../support/service-manager.ts'
import { until } from '../support/until.ts'

const files = { 'home.mjs': 'export default () => String(process.pid)' }

async function manager(t: TestContext): Promise<ServiceManager> {
  return serviceManager(t, { cwd: applicationFolder(files) })
}

describe('a restart on a socket kept by the service manager', () => {
  it('fails no request of clients with keep-alive connections', async (t) => {
    const service = await manager(t)
    let pid = await service.start()
    const client = startClient({ url: `http://127.0.0.1:${service.port}/`, connections: 20 })
    const served = (): number => client.tally.bodies.get(String(pid)) ?? 0
    for (let count = 0; count < 3; count += 1) {
      await until(() => served() >= 1250)
      pid = await service.restart()
    }
    await until(() => served() >= 1250)
    const { answered, failed } = await client.stop()
    assert.deepEqual(failed, [])
    assert.ok(answered >= 5000, `${answered} answers`)
    service.kill('SIGTERM')
    assert.equal(await service.ended(), 0)
    assert.doesNotMatch(service.output(), /ERROR|FATAL|cut \d/)
  })
})
