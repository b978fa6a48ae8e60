import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withSections } from '../../lib/config/assemble.ts'
import { parseConfig } from '../../lib/config/load.ts'

const { config } = parseConfig({ 'server.port': 81, trace: { app: false } }, '/')

test('contains every key, dotted and by its groups', () => {
  const grouped = withSections(config)
  for (const [key, value] of Object.entries(config)) {
    let found: unknown = grouped
    for (const name of key.split('.')) found = (found as Record<string, unknown>)[name]
    assert.deepEqual([found, grouped[key]], [value, value], key)
  }
  assert.deepEqual((grouped['server'] as { port: number }).port, 81)
})

test('is frozen at every level', () => {
  const server = withSections(config)['server'] as { port: number; tls: { cert: string } }
  assert.throws(() => (server.port = 1), TypeError)
  assert.throws(() => (server.tls.cert = 'x'), TypeError)
  assert.equal(config['server.port'], 81)
})
