import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { createApp, type App } from '../support/app.ts'
import { publishedInsecureAppKey } from '../../lib/config/app-key.ts'
import { foreignCluster } from '../../lib/cli/foreign-cluster.ts'
import { initApplication } from '../../lib/commands/init.ts'
import { loadConfig, parseConfig } from '../../lib/config/load.ts'
import { inconsistencyWarnings, scryptRefused } from '../../lib/config/together.ts'
import { UsedCodesFile } from '../../lib/control/used-codes-file.ts'
import { nodeWarnings } from '../../lib/process/safe-node.ts'
import { codeWarnings, readCode } from '../../lib/proof/code-digest.ts'
import { listRefused } from '../../lib/nodes/membership.ts'
import { credentialsDiffer, outOfSync } from '../../lib/nodes/node.ts'
import { descriptorsShort } from '../../lib/composition/descriptor-guard.ts'
import { doesNotServe } from '../../lib/cluster/supervisor.ts'
import { messagesMissing } from '../../lib/nodes/shared.ts'
import { startApplication, writeFiles, type Files } from '../support/application.ts'
import { makeCertificate } from '../support/certificate.ts'
import { runCurlLines } from '../support/curl.ts'
import { codeOf, readPage, tableBelow } from '../support/markdown.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const admin = readPage('docs/admin.md')
const prose = admin.prose.replaceAll(/\s+/g, ' ')
const troubleshooting = readPage('docs/troubleshooting.md')

describe('docs/admin.md', () => {
  it('has curl lines that print what the page shows, up to the stop of the server', async (t) => {
    const { app, url, folder } = await startMade(t)
    await runCurlLines(admin, { 8080: url }, folder)
    await app.stopped
  })

  it('is right about the type of each response', async (t) => {
    const { url } = await startApplication(t, {}, { 'app.env': 'dev' })
    assert.match(prose, /`\?format=json`\. Metrics returns text\. All others return JSON\./)
    const [, pages = '', listings = ''] = /HTML comes from ([^:]*), and from ([^:]*) without `\?format=json`/.exec(prose) ?? []
    const withJson = listings.split(/, | and /)
    const html = [...pages.split(/, | and /), ...withJson]
    const endpoints = tableBelow(admin, '## Endpoints').map(([cell = '']) => cell.replaceAll('`', '').split(' '))
    const paths = endpoints.flatMap(([method, path = '']) => (method === 'GET' ? [path] : []))
    assert.deepEqual(html.filter((name) => !paths.some((path) => path.endsWith(name))), [])
    for (const path of paths) {
      const name = path.slice(path.lastIndexOf(path.startsWith('/svc-routes/') ? '/' : '-') + 1)
      const query = name === 'match' ? '?path=/' : ''
      const type = (await request(url + path + query)).headers['content-type'] ?? ''
      const expected = name === 'metrics' ? /^text\/plain/ : html.includes(name) ? /^text\/html/ : /^application\/json/
      assert.match(type, expected, path)
      if (!withJson.includes(name)) continue
      assert.match((await request(`${url}${path}?format=json`)).headers['content-type'] ?? '', /^application\/json/, path)
    }
  })
})

describe('docs/troubleshooting.md', () => {
  const texts = tableBelow(troubleshooting, '## Warnings').flatMap(([cell = '']) => codeOf(cell))
  const rows = texts.map((text) => {
    const parts = text.split('...').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    return { text, pattern: new RegExp(`^${parts.join('[^]*')}$`) }
  })

  it('explains every warning, and no other', async (t) => {
    const warnings = [
      ...(await warningsOfFiles(t)),
      ...(await startApplication(t, { '.logs/svc.log/in-the-way': '' }, { app_key: '' })).app.warnings(),
      ...(await startApplication(t, {}, { app_key: publishedInsecureAppKey })).app.warnings(),
      ...(await startApplication(t, {}, { app_key_previous: [publishedInsecureAppKey] })).app.warnings(),
      ...warningsWithoutFile(t),
      scryptRefused,
      ...inconsistencyWarnings(parseConfig({ 'admin.allow': ['192.0.2.1'] }, '/')),
      ...inconsistencyWarnings(parseConfig({ 'admin.totp': 'A'.repeat(32), 'admin.secret': '0'.repeat(32) }, '/')),
      ...warningsOfUsedCodes(),
      ...(await warningsOfMaintenance(t)),
      ...codeWarnings(readCode(temporaryFolder(), 'lib')),
      ...nodeWarnings('20.20.2'),
      ...nodeWarnings('22.0.0'),
      ...hiddenSecret(),
      ...(await warningsOfCertificates(t)),
      ...(await startApplication(t, withOwnSessions, { 'shared.url': 'redis://127.0.0.1:1' })).app.warnings(),
      ...(await startApplication(t, {}, { 'server.processes': 2 })).app.warnings(),
      ...(await startApplication(t, { '.cached/temp': '' })).app.warnings(),
      ...(await warningsOfChecks(t)),
      ...[outOfSync('of a reason'), listRefused('of a reason'), credentialsDiffer, doesNotServe(1, 'of a reason'), foreignCluster, descriptorsShort(820, 1024), messagesMissing('the shared engine X', new Error('of a reason'))],
    ]
    assert.deepEqual(warnings.filter((warning) => !rows.some(({ pattern }) => pattern.test(warning))), [])
    assert.deepEqual(rows.filter(({ pattern }) => !warnings.some((warning) => pattern.test(warning))), [])
    assert.ok(!rows.some(({ pattern }) => pattern.test('a text that is no warning')))
  })
})

/** The warning about a readiness check that fails. */
async function warningsOfChecks(t: TestContext): Promise<readonly string[]> {
  const { app } = await startApplication(t, {})
  app.ready('database', () => false)
  await app.request('/svc-ready')
  return app.warnings()
}

/** The warnings about files of maintenance: a page, a folder, one that is too large, one without a name that exists. */
async function warningsOfMaintenance(t: TestContext): Promise<readonly string[]> {
  const all = async (files: Files, config: Readonly<Record<string, unknown>> = {}): Promise<readonly string[]> =>
    (await startApplication(t, files, config)).app.warnings()
  const long = { 'paths.maintenance': 'x'.repeat(300) }
  return [
    ...(await all({ 'maintenance.html': 'page' })),
    ...(await all({ 'maintenance.html/file': '' })),
    ...(await all({ 'maintenance.html': 'x'.repeat(2 ** 20 + 1) })),
    ...(await all({}, long)),
    'paths.maintenance: /srv/svc/maintenance.html cannot be read, so visitors get a built-in page: of a reason',
  ]
}

/** The warning about a file that is in the way of `totp-used`. */
function warningsOfUsedCodes(): readonly string[] {
  const folder = join(temporaryFolder(), 'cache')
  writeFileSync(folder, '')
  const file = new UsedCodesFile(folder, () => {})
  file.write({})
  const folderOfDamaged = temporaryFolder()
  writeFileSync(join(folderOfDamaged, 'totp-used'), '{')
  const damaged = new UsedCodesFile(folderOfDamaged, () => {})
  damaged.read()
  return [...file.warnings(), ...damaged.warnings()]
}

/** The warnings of a server about keys, middleware, routes and actions that are wrong in every way. */
async function warningsOfFiles(t: TestContext): Promise<readonly string[]> {
  const { app } = await startMade(t, {
    'svc.json': { server: { prot: 1, pipeline_limit: 64 } },
    'routes/middleware/idle.mjs': 'export default 5',
    'routes/middleware/config.json': { load: ['idle.mjs'], setups: {}, setup: { nobody: {} } },
    'routes/a.json': [
      { name: 'missing', url: '/missing', action: 'missing.mjs' },
      { name: 'view', url: '/view', action: 'missing.html' },
      { name: 'kind', url: '/kind', action: 'a.txt' },
      { name: 'export', url: '/export', action: 'a.mjs@other' },
      { name: 'broken', url: '/broken', action: 'broken.mjs' },
      { name: 'field', url: '/field', action: 'a.mjs', methods: 'GET' },
      { name: 'method', url: '/method', action: 'a.mjs', method: 'GTE' },
      { name: 'pattern', url: 'x', action: 'a.mjs' },
      { name: 'middleware', url: '/z', action: 'a.mjs', middleware: 'SVC_MwSesion' },
      { name: 'outside', url: '/outside', action: '../a.mjs' },
      { name: 'must', url: 5, action: 'a.mjs' },
      { name: 'view', url: '/again', action: 'a.mjs' },
      { url: '/noname', action: 'a.mjs' },
    ],
    'a.mjs': 'export default () => 1',
    'a.txt': '',
    'broken.mjs': 'export default (',
  })
  await assert.rejects(app.control.apply({ type: 'routes.reload' }))
  return app.warnings()
}

/** Sessions that are configured for one process. */
const withOwnSessions = {
  'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs', middleware: 'SVC_MwSession' }],
  'a.mjs': "export default () => ''",
  'routes/middleware/config.json': { setup: { session: { store: 'memory' } } },
}

function hiddenSecret(): readonly string[] {
  const folder = temporaryFolder()
  writeFiles(folder, { 'svc.json': { app_key: 'of the file' } })
  return loadConfig(`${folder}/svc.json`, { app_key: 'passed' }, { app_key: 'the credential app_key' }).warnings.slice(0, 1)
}

/** The warnings of a server about certificates that have expired, are not valid yet, or could not be read. */
async function warningsOfCertificates(t: TestContext): Promise<readonly string[]> {
  const folder = temporaryFolder()
  const warnings: string[] = []
  for (const times of [{ to: new Date('2021-01-01') }, { from: new Date('2048-01-01') }]) {
    makeCertificate(folder, 'c', times)
    const config = { 'server.port': 0, 'log.console': false, 'server.tls.cert': 'c.pem', 'server.tls.key': 'c.key' }
    const app = createApp({ folder, config })
    t.after(async () => {
      await app.stop()
      app.closeLogs()
    })
    await app.start()
    writeFiles(folder, { 'c.pem': 'none' })
    await assert.rejects(app.control.apply({ type: 'certificates.reload' }))
    warnings.push(...app.warnings().filter((warning) => warning.includes('certificate')))
  }
  return warnings
}

function warningsWithoutFile(t: TestContext): readonly string[] {
  const folder = temporaryFolder()
  const app = createApp({ loaded: loadConfig(`${folder}/svc.json`, { 'log.console': false }) })
  t.after(() => app.closeLogs())
  return app.warnings()
}

/** An application as `init` makes it, with more files; what it has already is replaced. */
async function startMade(
  t: TestContext,
  files: Readonly<Record<string, unknown>> = {},
): Promise<{ app: App; url: string; folder: string }> {
  const folder = temporaryFolder()
  initApplication(folder)
  writeFiles(folder, files)
  const app = createApp({ loaded: loadConfig(`${folder}/svc.json`, { 'server.port': 0, 'log.console': false }) })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  const { url } = await app.start()
  return { app, url, folder }
}
