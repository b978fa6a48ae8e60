// Saves into files of every form, for a sample and for many.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '../../lib/config/load.ts'
import { saveConfig } from '../../lib/config/save.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Asserts for `rounds` seeded files that saved values load again, and that nothing else changes. */
export function checkSaved(rounds: number): void {
  const random = new Seeded(7)
  const file = join(temporaryFolder(), 'svc.json')
  const keys = ['admin.user', 'admin.secret', 'app_key', 'server.tls.cert', 'paths.log', 'shared.url'] as const
  for (let round = 0; round < rounds; round++) {
    const object: Record<string, unknown> = {}
    for (const key of keys) {
      const value = key === 'paths.log' ? 'logs' : ''
      if (random.integer(2) === 0) continue
      const [group = '', name = ''] = key.split(/\.(.*)/)
      if (name === '' || random.integer(2) === 0) object[key] = value
      else object[group] = { ...(object[group] as object | undefined), [name]: value }
      if (random.integer(3) === 0) object[`mine ${random.integer(99)}`] = { '2': [1, {}], '1': null }
    }
    const lineEnd = random.pick(['\n', '\r\n'])
    writeFileSync(file, JSON.stringify(object, null, random.pick([0, 1, 2, '\t'])).replaceAll('\n', lineEnd), { mode: 0o600 })
    const before = loadConfig(file)
    const changes = { 'admin.user': `user ${round}`, 'admin.secret': '"', app_key: 'k', 'paths.log': 'else' }
    saveConfig(file, changes)
    const after = loadConfig(file)
    assert.deepEqual(after.config, { ...before.config, ...changes })
    assert.equal(after.warnings.length, before.warnings.length)
  }
}
