import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseConfig } from '../../lib/config/load.ts'
import { configOfService, isServiceManaged } from '../../lib/systemd/service.ts'

test('knows a service by what its manager sets', () => {
  assert.equal(isServiceManaged({ PATH: '/bin', HOME: '/root' }), false)
  for (const name of ['INVOCATION_ID', 'NOTIFY_SOCKET', 'LISTEN_FDS']) assert.equal(isServiceManaged({ [name]: '1' }), true, name)
})

test('a service asks for the setup token always, unless the file says otherwise', () => {
  const rows = [['auto', 'on'], ['on', 'on'], ['off', 'off']] as const
  for (const [given, used] of rows) {
    const config = configOfService(parseConfig({ 'admin.setup_token': given }, '/').config)
    assert.equal(config['admin.setup_token'], used)
  }
})
