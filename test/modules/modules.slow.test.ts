import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { application } from './modules-support.ts'

test('a process that has reloaded modules exits on its own', () => {
  const app = application({ 'a.js': 'export default () => 1\n' })
  app.write({
    'main.ts': `
      import { writeFileSync } from 'node:fs'
      import { Modules } from ${JSON.stringify(new URL('../../lib/modules/modules.ts', import.meta.url).href)}
      const modules = new Modules(import.meta.dirname)
      await modules.load(import.meta.dirname + '/a.js')
      writeFileSync(import.meta.dirname + '/a.js', 'export default () => 22')
      await modules.refresh()
      console.log((await modules.load(import.meta.dirname + '/a.js')).default())`,
  })
  const options = process.execArgv.filter((option) => !option.startsWith('--test'))
  const child = spawnSync(process.execPath, [...options, join(app.root, 'main.ts')], {
    timeout: 20_000,
    encoding: 'utf8',
    env: { ...process.env, NODE_TEST_CONTEXT: '' },
  })
  assert.equal(child.stdout, '22\n', child.stderr)
  assert.equal(child.status, 0)
})
