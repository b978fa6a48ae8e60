import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseConfig } from '../../lib/config/load.ts'
import { configOfService, isServiceManaged } from '../../lib/systemd/service.ts'

test('detects a service by the variables of its manager', () => {
  assert.equal(isServiceManaged({ PATH: '/bin', HOME: '/root' }), false)
  for (const name of ['INVOCATION_ID', 'NOTIFY_SOCKET', 'LISTEN_FDS']) assert.equal(isServiceManaged({ [name]: '1' }), true, name)
})

test('a service always requires the setup token, unless the file configures it', () => {
  const rows = [['auto', 'on'], ['on', 'on'], ['off', 'off']] as const
  for (const [given, used] of rows) {
    const config = configOfService(parseConfig({ 'admin.setup_token': given }, '/').config)
    assert.equal(config['admin.setup_token'], used)
  }
})
