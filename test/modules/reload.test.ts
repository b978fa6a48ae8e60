import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ReloadError } from '../../lib/control/commands.ts'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { checkReloads } from './reload-support.ts'

const one = (action = 'a.mjs', more: object = {}): object => ({ name: 'a', url: '/a', action, ...more })
const go = (key: string): boolean => process.emit(`go-${key}` as 'SIGUSR2') // Any name will do, but the types know a few.

describe('a reload', () => {
  it('picks up a changed module with its imports, and keeps the state of the others', async (t) => {
    const { app, url, write } = await startApplication(t, {
      'routes/a.json': [one(), { name: 'count', url: '/count', action: 'count.mjs' }],
      'a.mjs': "import { text } from './lib/text.mjs'; export default () => text",
      'lib/text.mjs': "export const text = 'old'",
      'count.mjs': 'let count = 0; export default () => String((count += 1))',
    })
    assert.deepEqual([(await request(`${url}/a`)).text, (await request(`${url}/count`)).text], ['old', '1'])
    write({ 'lib/text.mjs': "export const text = 'new text'" })
    await app.control.apply({ type: 'routes.reload' })
    assert.deepEqual([(await request(`${url}/a`)).text, (await request(`${url}/count`)).text], ['new text', '2'])
  })

  it('changes nothing when something is wrong: table, modules, background work', async (t) => {
    const key = `refused-${process.pid}`
    const { app, url, write } = await startApplication(t, {
      'routes/a.json': [one('a.mjs', { middleware: 'm' })],
      'a.mjs': "export default (ctx) => `old action, ${ctx.state.m}`",
      'routes/middleware/config.json': { load: ['m.mjs'] },
      'routes/middleware/m.mjs': `export default (ctx, next) => { ctx.state.m = 'old middleware'; return next() }
        export const setup = () => { process.emit('${key}', 'old up'); return () => process.emit('${key}', 'old down') }`,
    })
    const steps: string[] = []
    process.on(key, (step: string) => steps.push(step))
    t.after(() => process.removeAllListeners(key))
    write({
      'a.mjs': 'export default (ctx) => `new action, ${ctx.state.m}`',
      'routes/middleware/m.mjs': `export default (ctx, next) => { ctx.state.m = 'new middleware'; return next() }
        export const setup = () => { process.emit('${key}', 'new up'); return () => process.emit('${key}', 'new down') }`,
      'routes/a.json': [one('a.mjs', { middleware: 'm' }), { name: 'b' }],
    })
    await assert.rejects(app.control.apply({ type: 'routes.reload' }), (error) => {
      assert.ok(error instanceof ReloadError)
      const places = error.problems.map(({ file, index, name }) => `${file} ${index} ${name}`)
      assert.deepEqual(new Set(places), new Set(['a.json 1 b']))
      return true
    })
    assert.equal((await request(`${url}/a`)).text, 'old action, old middleware')
    assert.deepEqual(steps, [])

    write({ 'routes/a.json': [one('a.mjs', { middleware: 'm' })] })
    await app.control.apply({ type: 'routes.reload' })
    assert.equal((await request(`${url}/a`)).text, 'new action, new middleware')
    assert.deepEqual(steps, ['new up', 'old down'])
  })

  it('is refused for a broken module, and works again once it is fixed', async (t) => {
    const { app, url, write } = await startApplication(t, { 'routes/a.json': [one()], 'a.mjs': "export default () => 'old'" })
    write({ 'a.mjs': 'export default (' })
    const problem = /a\.json:1:25: route "a": Cannot load a\.mjs: a\.mjs:1: SyntaxError/
    await assert.rejects(app.control.apply({ type: 'routes.reload' }), problem)
    assert.equal((await request(`${url}/a`)).text, 'old')
    write({ 'a.mjs': "export default () => 'mended'" })
    await app.control.apply({ type: 'routes.reload' })
    assert.equal((await request(`${url}/a`)).text, 'mended')
  })

  it('lets requests in flight finish with the version they started with', async (t) => {
    const key = `flight-${process.pid}`
    const { app, url, write, lines } = await startApplication(t, {
      'routes/a.json': [one()],
      'a.mjs': `export default async (ctx) => {
        ctx.log('at work')
        await new Promise((resolve) => process.once('go-${key}', resolve))
        return ctx.route.scope + ' old'
      }`,
    })
    const running = request(`${url}/a`)
    await until(() => lines().some((line) => line.endsWith('at work')))
    write({ 'routes/a.json': [{ name: 'b', url: '/b', action: 'a.mjs' }], 'a.mjs': "export default () => 'new'" })
    await app.control.apply({ type: 'routes.reload' })
    assert.equal((await request(`${url}/a`)).status, 404)
    assert.equal((await request(`${url}/b`)).text, 'new')
    go(key)
    assert.deepEqual([(await running).status, (await running).text], [200, ' old'])
  })

  it('serves a missing export, a broken module and a left-out record once they are fixed', async (t) => {
    const { app, url, write, lines } = await startApplication(t, {
      'routes/a.json': [one('a.mjs@late'), { name: 'b', url: '/b', action: 'broken.mjs' }, { name: 'c', url: '/c' }],
      'a.mjs': "export default () => 'x'",
      'broken.mjs': "throw new Error('ouch')",
    })
    assert.deepEqual(
      await Promise.all(['/a', '/b', '/c'].map(async (path) => (await request(url + path)).status)),
      [500, 500, 404],
    )
    const said = lines().map((line) => line.slice(26))
    for (const begin of [
      '[WARN ] [config] a.json: route "a": Cannot run a.mjs: its export "late"',
      '[ERROR] [config] a.json: route "b": Cannot load broken.mjs: broken.mjs:1: Error: ouch',
      '[ERROR] [config] a.json: route "c": ',
    ]) {
      assert.ok(said.some((line) => line.replace(/:1:\d+: /, ': ').startsWith(begin)), begin)
    }
    assert.equal(app.warnings().length, 3)
    write({
      'a.mjs': "export const late = () => 'late'",
      'broken.mjs': "export default () => 'mended'",
      'routes/a.json': [one('a.mjs@late'), ...['b', 'c'].map((name) => ({ name, url: `/${name}`, action: 'broken.mjs' }))],
    })
    await app.control.apply({ type: 'routes.reload' })
    const texts = await Promise.all(['/a', '/b', '/c'].map(async (path) => (await request(url + path)).text))
    assert.deepEqual(texts, ['late', 'mended', 'mended'])
    assert.deepEqual(app.warnings(), [])
  })

  it('reports missing actions as warnings; they serve once they exist', async (t) => {
    const { app, url, write } = await startApplication(t, {})
    write({ 'routes/a.json': [one('later.mjs')] })
    const { warnings } = await app.control.apply({ type: 'routes.reload' })
    assert.deepEqual(warnings, ['a.json:1:25: route "a": Cannot load later.mjs: there is no such file'])
    assert.deepEqual(app.warnings(), warnings)
    assert.equal((await request(`${url}/a`)).status, 500)
    write({ 'later.mjs': "export default () => 'here'" })
    assert.equal((await request(`${url}/a`)).text, 'here')
  })

  it('does not mix two concurrent ones', async (t) => {
    const { app, url, write } = await startApplication(t, { 'routes/a.json': [one()], 'a.mjs': "export default () => 'old'" })
    write({ 'a.mjs': "export default () => 'new'" })
    const both = await Promise.all([1, 2].map(() => app.control.apply({ type: 'routes.reload' })))
    assert.deepEqual(both.map(({ totalDeleted, totalLoaded }) => [totalDeleted, totalLoaded]), [[1, 1], [1, 1]])
    assert.equal((await request(`${url}/a`)).text, 'new')
  })

  it('never exposes half a table, or a 404 that neither table would give: 8 reloads', (t) => checkReloads(t, 8))

  it('is not applied while the server stops', async (t) => {
    const { app } = await startApplication(t, { 'routes/a.json': [one()], 'a.mjs': "export default () => 'old'" })
    await app.stop()
    await assert.rejects(app.control.apply({ type: 'routes.reload' }), /the server is being stopped/)
  })
})
