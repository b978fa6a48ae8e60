// `import ... from 'svc'` in modules that the server loads is the server's entry, even if npm has a package of that name.
import assert from 'node:assert/strict'
import * as nodeModule from 'node:module'
import { test } from 'node:test'
import * as svc from '../../lib/index.ts'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'
import { application } from '../modules/modules-support.ts'

/** A package of npm with the name of the server. */
const stranger = {
  'node_modules/svc/package.json': '{"name": "svc", "main": "index.js"}',
  'node_modules/svc/index.js': "exports.HttpError = 'another package'",
}
const exported = (how: string): string => `${how}\nexport default () => HttpError\n`
/** Before 22.15 Node runs hooks in a thread, which `require` does not use. */
const hooksRequire = 'registerHooks' in nodeModule

test('an ES module imports the server itself, by each kind of import, from any depth, over a package of that name', async () => {
  const app = application({
    ...stranger,
    'static.js': exported("import { HttpError } from 'svc'"),
    'all.js': exported("import * as svc from 'svc'\nconst { HttpError } = svc"),
    'dynamic.js': exported("const { HttpError } = await import('svc')"),
    'again.js': "export { HttpError } from 'svc'\n",
    'deep/a.mjs': exported("import { HttpError } from '../again.js'"),
    'common.cjs': "module.exports = async () => (await import('svc')).HttpError\n",
  })
  for (const file of ['static.js', 'all.js', 'dynamic.js', 'deep/a.mjs', 'common.cjs']) {
    assert.equal(await app.value(file), svc.HttpError, file)
  }
})

test('a CommonJS module requires the server itself, from Node 22.15 on', async () => {
  const app = application({
    ...(hooksRequire && stranger),
    'a.cjs': "const { HttpError } = require('svc')\nmodule.exports = () => HttpError\n",
    'b.js': `import { createRequire } from 'node:module'\n${exported("const { HttpError } = createRequire(import.meta.url)('svc')")}`,
  })
  for (const file of ['a.cjs', 'b.js']) {
    if (hooksRequire) assert.equal(await app.value(file), svc.HttpError, file)
    else await assert.rejects(app.load(file), /Cannot find module 'svc'/, file)
  }
})

test('a package gets its installed dependency, or else the server', async () => {
  const kit = (name: string) => ({
    [`node_modules/${name}/package.json`]: `{"name": "${name}", "type": "module", "exports": "./index.js"}`,
    [`node_modules/${name}/index.js`]: "import * as svc from 'svc'\nexport default svc.HttpError ?? svc.default.HttpError\n",
  })
  const user = (name: string): string => `import 'svc'\nimport HttpError from '${name}'\nexport default () => HttpError\n`
  const alone = application({ ...kit('kit'), 'a.js': user('kit') })
  assert.equal(await alone.value('a.js'), svc.HttpError)
  const beside = application({ ...kit('other-kit'), ...stranger, 'a.js': user('other-kit') })
  assert.equal(await beside.value('a.js'), 'another package')
})

test('is one instance across reloads, also in a module that starts to import it', async () => {
  const app = application({ 'a.js': exported("import { HttpError } from 'svc'"), 'b.js': 'export default () => undefined\n' })
  assert.deepEqual([await app.value('a.js'), await app.value('b.js')], [svc.HttpError, undefined])
  for (const round of [1, 2]) {
    const source = exported(`import { HttpError } from 'svc' // ${round}`)
    app.write({ 'a.js': source, 'b.js': source })
    assert.deepEqual(await app.refresh(), ['a.js', 'b.js'])
    for (const file of ['a.js', 'b.js']) assert.equal(await app.value(file), svc.HttpError, file)
  }
})

test('actions and middleware end a request with its HttpError, and start servers with its createApp', async (t) => {
  const { url } = await startApplication(t, {
    'routes/a.json': [
      { name: 'a', url: '/', action: 'a.mjs' },
      { name: 'b', url: '/b', action: 'a.mjs', middleware: 'refuse' },
      { name: 'c', url: '/c', action: 'a.mjs@other' },
    ],
    'routes/middleware/config.json': { load: ['refuse.mjs'] },
    'routes/middleware/refuse.mjs': "import { HttpError } from 'svc'\nexport default () => { throw new HttpError(403, 'no', 'Not you') }",
    'a.mjs': `import { createApp, HttpError } from 'svc'
      export default () => { throw new HttpError(418, 'teapot', 'Short and stout', { headers: { 'X-Tea': 'mint' } }) }
      export const other = async () => {
        const app = createApp({ folder: import.meta.dirname ?? '.', config: { access_log: { enabled: false }, log: { console: false } } })
        try {
          return { status: (await app.request('/svc-ping')).status }
        } finally {
          await app.stop()
          app.closeLogs()
        }
      }`,
  })
  const headers = { accept: 'application/json' }
  const a = await request(url, { headers })
  assert.deepEqual([a.status, a.json(), a.headers['x-tea']], [418, { error: 'teapot', detail: 'Short and stout' }, 'mint'])
  assert.deepEqual((await request(`${url}/b`, { headers })).json(), { error: 'no', detail: 'Not you' })
  assert.deepEqual((await request(`${url}/c`)).json(), { status: 200 })
})
