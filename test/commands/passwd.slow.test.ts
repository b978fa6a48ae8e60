import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseOptions } from '../../lib/cli/options.ts'
import { runLauncher } from '../support/launch.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('is a command with the options of the configuration', async (t) => {
  const parsed = { word: 'passwd', totp: false, config: 'a.json', overrides: {} }
  assert.deepEqual(parseOptions(['passwd', '--config', 'a.json']), parsed)
  assert.deepEqual(parseOptions(['passwd', '--totp', '--config', 'a.json']), { ...parsed, totp: true })
  assert.deepEqual(parseOptions(['check', '--totp']), { word: 'usage', error: 'check does not take --totp' })
  const file = join(temporaryFolder(), 'svc.json')
  writeFileSync(file, '{"admin": {"user": 5}}')
  const wrongFile = await runLauncher(t, ['passwd', '--config', file], { cwd: temporaryFolder() })
  assert.equal(wrongFile.status, 78)
  assert.match(wrongFile.stderr, /admin\.user must be a string/)
  const noInput = await runLauncher(t, ['passwd'], { cwd: temporaryFolder() })
  assert.deepEqual(noInput, {
    status: 2,
    stdout: '',
    stderr: 'Standard input must have three lines: the name, the password, and the password again\n',
  })
})
