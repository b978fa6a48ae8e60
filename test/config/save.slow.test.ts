import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../../lib/config/load.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { checkSaved } from './save-support.ts'

test('saved values load again, whatever the form of 400 files (seeded)', () => checkSaved(400))

test('two processes that save concurrently always leave a complete file', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  writeFileSync(file, '{"mine": "kept"}')
  const module = new URL('../../lib/config/save.ts', import.meta.url).href
  const writer = (key: string): ReturnType<typeof spawn> =>
    spawn(
      process.execPath,
      [
        ...process.execArgv,
        '--input-type=module',
        '--eval',
        `const { saveConfig } = await import(${JSON.stringify(module)})
        for (let n = 1; n <= 100; n++) saveConfig(${JSON.stringify(file)}, { ${JSON.stringify(key)}: key(n) })
        function key(n) { return 'value ' + n }`,
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    )
  const writers = [writer('admin.user'), writer('admin.secret')]
  const ended = writers.map(async (child) => (await once(child, 'exit'))[0] as number | null)
  let running = true
  const all = Promise.all(ended).finally(() => (running = false))
  while (running) {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    assert.equal((value as { mine: string }).mine, 'kept')
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.deepEqual(await all, [0, 0])
  const { config } = loadConfig(file)
  assert.ok([config['admin.user'], config['admin.secret']].includes('value 100'))
  assert.deepEqual(readdirSync(folder), ['svc.json'])
})
