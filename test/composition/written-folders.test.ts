import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { configurationFolder, FolderWatch, foldersOf, unwritable, type WrittenFolder } from '../../lib/composition/written-folders.ts'
import { loadConfig, type LoadedConfig } from '../../lib/config/load.ts'
import { startApplication, writeFiles } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const saved = { user: 'ann', password: 'p', secret: 's' }

function loadedWith(config: object): { loaded: LoadedConfig; file: string } {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  writeFiles(folder, { 'svc.json': config })
  return { loaded: loadConfig(file), file }
}

describe('the folder of the configuration', () => {
  const rows: readonly (readonly [name: string, config: object, credentials: typeof saved, counts: boolean])[] = [
    ['while the panel is not set up', {}, { user: '', password: '', secret: '' }, true],
    ['while there is no secret', {}, { ...saved, secret: '' }, true],
    ['not when all is saved', {}, saved, false],
    ['not in dev', { app: { env: 'dev' } }, { user: '', password: '', secret: '' }, false],
    ['not without the panel', { admin: { enabled: false } }, { user: '', password: '', secret: '' }, false],
  ]
  for (const [name, config, credentials, counts] of rows) {
    it(`counts ${name}`, () => {
      const { loaded, file } = loadedWith(config)
      assert.equal(configurationFolder(loaded, file, credentials).length, counts ? 1 : 0)
      assert.deepEqual(configurationFolder(loaded, undefined, credentials), [])
    })
  }
})

describe('the folders that a server writes', () => {
  it('are each reported with their key, the reason and the effect', async () => {
    const { loaded } = loadedWith({ paths: { log: 'a', cache: 'b', temp: 'c' } })
    for (const name of ['a', 'b', 'c']) writeFileSync(join(loaded.folder, name), '')
    const lines = (await unwritable(foldersOf(loaded))).map(({ line }) => line)
    const line = (key: string, name: string): RegExp => new RegExp(`^${key}: this user cannot write to .*/${name} \\(.*/${name} is not a folder\\): .`)
    assert.equal(lines.length, 3)
    for (const [at, [key, name]] of ([['paths.log', 'a'], ['paths.cache', 'b'], ['paths.temp', 'c']] as const).entries()) {
      assert.match(lines[at] ?? '', line(key, name))
    }
  })

  it('are checked periodically: a change is logged once, and a problem is a warning until it is resolved', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const path = join(temporaryFolder(), 'folder')
    const folders: readonly WrittenFolder[] = [{ what: 'x', path, effect: 'y fails' }]
    const lines: string[] = []
    const log = { warn: (line: string) => lines.push(`WARN ${line}`), info: (line: string) => lines.push(`INFO ${line}`) }
    const watch = new FolderWatch({ folders: () => folders, log })
    writeFileSync(path, '')
    await watch.start()
    await watch.check()
    const line = `x: this user cannot write to ${path} (${path} is not a folder): y fails`
    assert.deepEqual([watch.warnings(), lines], [[line], [`WARN ${line}`]])
    rmSync(path)
    const looked = nextLook(t, watch)
    t.mock.timers.tick(10_000)
    await looked
    assert.deepEqual([watch.warnings(), lines.slice(1)], [[], [`INFO resolved: ${line}`]])
    watch.close()
  })
})

/** Resolves after the next periodic check. */
function nextLook(t: TestContext, watch: FolderWatch): Promise<void> {
  const look = watch.check.bind(watch)
  return new Promise((resolve) => t.mock.method(watch, 'check', () => look().then(resolve)))
}

describe('a server', () => {
  it('starts with a warning only for a folder that it cannot write', async (t) => {
    const { app, lines } = await startApplication(t, { '.cached/temp': '' })
    const [warning = '', ...others] = app.warnings()
    assert.match(warning, /^paths\.temp: this user cannot write to .*\/\.cached\/temp \(.* is not a folder\): uploads above 64 KiB are 500$/)
    assert.deepEqual(others, [])
    assert.ok(lines().some((line) => line.endsWith(`[WARN ] [server] ${warning}`)))
  })

  it('warns when the folder of its session files is no longer writable', async (t) => {
    const session = { store: 'file', path: 'sessions' }
    t.mock.timers.enable({ apis: ['setInterval'] })
    const checked = new Promise((resolve) => {
      const { check } = FolderWatch.prototype
      t.mock.method(FolderWatch.prototype, 'check', async function (this: FolderWatch) {
        await check.call(this)
        if (this.warnings().length > 0) resolve(undefined)
      })
    })
    const { app, folder } = await startApplication(t, { 'routes/middleware/config.json': { setup: { session } } })
    assert.deepEqual(app.warnings(), [])
    writeFileSync(join(folder, 'sessions'), '')
    t.mock.timers.tick(10_000)
    await checked
    assert.match(app.warnings().join(), /^setup\.session\.path: this user cannot write to .*: requests that keep a session are 500$/)
  })
})
