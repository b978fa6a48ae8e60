// What somebody may do to the servers who reaches their engine, and what a new app_key does.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { initialState, nextState, withRoute, type DesiredState } from '../../lib/control/desired-state.ts'
import { RedisState } from '../../lib/nodes/redis-state.ts'
import { startSeveral } from '../cluster/several.ts'
import { startApplication, type TestApplication } from '../support/application.ts'
import { answersOf, ask, isReady, nodeFiles, post, route, tableOf } from '../support/node-panel.ts'
import { openRedis, startRedis, type RedisServer } from '../support/redis-server.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'

const key = 'svc:nodes:state'

function startNode(t: TestContext, { url }: RedisServer, config: object = {}): Promise<TestApplication> {
  return startApplication(t, nodeFiles, { 'shared.url': url, 'app.env': 'dev', ...config })
}

/** The fields of the state. */
async function fieldsOf(server: RedisServer): Promise<Record<string, string>> {
  const names = ['version', 'stamp', 'ancestors', 'content', 'mac']
  const values = await Promise.all(names.map((name) => server.ask('HGET', key, name)))
  return Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']))
}

async function put(server: RedisServer, fields: Readonly<Record<string, string>>): Promise<void> {
  await server.ask('HSET', key, ...Object.entries(fields).flat())
  await server.ask('PUBLISH', 'svc:0:nodes', 'state')
}

describe('an attacker with full access to the engine but without app_key', () => {
  it('changes nothing: a state without a valid HMAC is refused, and replaced by the state of the nodes', async (t) => {
    const server = await startRedis(t)
    const nodes = [await startNode(t, server), await startNode(t, server)] as const
    assert.equal((await post(nodes[0].url, '/svc-routes/add', route('a'))).status, 200)
    const real = await fieldsOf(server)
    const evil = JSON.stringify({ reload: 0, routes: [{ name: 'evil', at: 9, record: route('evil') }], trace: {} })
    const forgeries: readonly Readonly<Record<string, string>>[] = [
      { version: '9', stamp: 'x', ancestors: real['stamp'] ?? '', content: evil, mac: real['mac'] ?? '' },
      { ...real, stamp: 'x1', content: evil },
      { ...real, stamp: 'x2', version: '2' },
      { ...real, stamp: 'x3', mac: '' },
      { ...real, stamp: 'x4', content: '{' },
      { ...real, stamp: 'x5', version: 'many' },
    ]
    for (const [at, forged] of forgeries.entries()) {
      await put(server, forged)
      await until(async () => (await server.ask('HGET', key, 'stamp')) === real['stamp'])
      assert.equal((await post(nodes[at % 2]?.url ?? '', '/svc-trace', { module: 'pool', enabled: at % 2 === 0 })).status, 200)
      Object.assign(real, await fieldsOf(server))
    }
    for (const node of nodes) assert.deepEqual(await tableOf(node), ['file /file', 'a /a'])
    const refused = nodes.flatMap((node) => node.lines()).filter((line) => /\[ERROR\] \[server\] svc:nodes:state in the shared engine was not written by a server with this app_key/.test(line))
    assert.ok(refused.length >= forgeries.length)
  })

  it('keeps a node that starts alone from being ready, until its advice is followed', async (t) => {
    const server = await startRedis(t)
    await server.ask('HSET', key, 'version', '1', 'stamp', 's', 'ancestors', '', 'content', '{}', 'mac', 'm')
    const node = await startNode(t, server)
    assert.equal(await isReady(node), false)
    assert.match(node.app.warnings().join(), /was not written by a server with this app_key and shared\.name: remove it with DEL svc:nodes:state$/)
    const refused = await post(node.url, '/svc-routes/add', route('a'))
    assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1'])
    await server.ask('DEL', key)
    await until(() => isReady(node))
    assert.equal((await post(node.url, '/svc-routes/add', route('a'))).status, 200)
  })

  it('cannot read the credentials of the panel', async (t) => {
    const server = await startRedis(t)
    const own = { 'app.env': 'prod', 'admin.user': 'root', 'admin.password': 'e52d98c459819a11775936d8dfbb7929', 'admin.secret': 'the secret' }
    await startNode(t, server, own)
    await until(async () => (await server.ask('HGET', key, 'version')) === '1')
    const { content = '' } = await fieldsOf(server)
    assert.match(content, /"credentials":"[\w-]{60,}"/)
    for (const secret of ['root', 'e52d98c4', 'the secret']) assert.equal(content.includes(secret), false)
  })

  it('cannot restore an old state while a node is running', async (t) => {
    const server = await startRedis(t)
    const nodes = [await startNode(t, server), await startNode(t, server)] as const
    assert.equal((await post(nodes[0].url, '/svc-routes/add', route('a'))).status, 200)
    const old = await fieldsOf(server)
    assert.equal((await post(nodes[1].url, '/svc-routes/delete', { name: 'a' })).status, 200)
    const { stamp } = await fieldsOf(server)
    await put(server, old)
    await until(async () => (await server.ask('HGET', key, 'stamp')) === stamp)
    assert.deepEqual(await answersOf(nodes, '/a'), ['404'])
  })

  it('cannot pass the state of one application to another', async (t) => {
    const server = await startRedis(t)
    const [one, other] = [await startNode(t, server), await startNode(t, server, { 'shared.name': 'shop' })]
    for (const name of ['a', 'b']) assert.equal((await post(other.url, '/svc-routes/add', route(name))).status, 200)
    await server.ask('COPY', 'shop:nodes:state', key, 'REPLACE')
    await until(() => one.app.warnings().length > 0)
    assert.match(one.app.warnings().join(), /was not written by a server with this app_key and shared\.name/)
    assert.deepEqual(await tableOf(one), ['file /file'])
  })
})

describe('two changes with the same number', () => {
  it('after the same state: the acknowledged one wins, and the lost one is logged', async (t) => {
    const server = await startRedis(t)
    const [one, two] = [await startNode(t, server), await startNode(t, server)]
    assert.equal((await post(one.url, '/svc-routes/add', route('a'))).status, 200)
    const before = await fieldsOf(server)
    assert.equal((await post(one.url, '/svc-routes/add', route('lost'))).status, 200)
    const lost = await fieldsOf(server)
    await two.app.stop()
    await one.app.stop()
    await server.ask('HSET', key, ...Object.entries(before).flat())
    const three = await startNode(t, server)
    assert.equal((await post(three.url, '/svc-routes/add', route('b'))).status, 200)
    await put(server, lost)
    await until(() => three.lines().some((line) => line.includes('[ERROR] [server] two changes 2 were made')))
    assert.match(three.lines().join('\n'), /two changes 2 were made, because the shared engine had lost one: kept the one of this node; lost: .*routes\.add \{"name":"lost"/)
    assert.equal(await server.ask('HGET', key, 'version'), '3')
    assert.deepEqual([await answersOf([three], '/b'), await answersOf([three], '/lost')], [['same'], ['404']])
    assert.equal((await post(three.url, '/svc-routes/add', route('c'))).status, 200)
    assert.equal(three.lines().filter((line) => line.includes('two changes')).length, 1)
  })

  it('after different states: the node\'s wins, as a new change', async (t) => {
    const server = await startRedis(t)
    const one = await startNode(t, server)
    assert.equal((await post(one.url, '/svc-routes/add', route('a'))).status, 200)
    const first = await fieldsOf(server)
    await one.app.stop()
    await server.ask('DEL', key)
    const two = await startNode(t, server)
    for (const name of ['b', 'c']) assert.equal((await post(two.url, '/svc-routes/add', route(name))).status, 200)
    await two.app.stop()
    const of = await fieldsOf(server)
    await server.ask('HSET', key, ...Object.entries(first).flat())
    const three = await startNode(t, server)
    assert.equal((await post(three.url, '/svc-routes/add', route('mine'))).status, 200)
    await put(server, of)
    await until(async () => (await server.ask('HGET', key, 'version')) === '3')
    assert.deepEqual(await answersOf([three], '/mine'), ['same'])
    assert.match(three.lines().join('\n'), /two changes 2 were made, because the shared engine had lost one: kept the one of this node; lost: .*"b".*"c"/)
    assert.equal((await post(three.url, '/svc-routes/add', route('d'))).status, 200)
    assert.equal(three.lines().filter((line) => line.includes('two changes')).length, 1)
  })
})

describe('a change that the engine loses before every node has it', () => {
  const withRouteMade = (state: DesiredState, name: string): DesiredState =>
    nextState(state, withRoute(state, name, route(name), false))
  const others = [
    { what: 'one change', make: (): DesiredState => withRouteMade(initialState, 'other') },
    { what: 'two changes', make: (): DesiredState => withRouteMade(withRouteMade(initialState, 'other'), 'more') },
  ]
  for (const { what, make } of others) {
    it(`is not acknowledged when another node makes ${what} instead`, async (t) => {
      const server = await startRedis(t)
      const config = { 'shared.url': server.url, app_key: 'k'.repeat(32) }
      const one = await startNode(t, server, config)
      const hung = await startSeveral(t, 1, nodeFiles, config)
      hung.child.kill('SIGSTOP')
      const asked = post(one.url, '/svc-routes/add', route('lost'))
      await until(async () => (await server.ask('HGET', key, 'version')) === '1')
      const announcement = { channel: 'svc:0:nodes', message: 'state' }
      const redis = openRedis(t, server.url)
      const state = new RedisState({ redis, key, name: 'svc', appKeys: [config.app_key], announcement })
      assert.equal(await state.write(make(), (await state.read()).stamp), true)
      const answer = await asked
      assert.equal(answer.status, 500)
      assert.match(answer.text, /not everywhere: the shared engine lost it, and another change replaced it/)
      assert.match(one.lines().join('\n'), /\[ERROR\] \[server\] two changes 1 were made, .*: kept the one of the engine; lost: .*routes\.add \{"name":"lost"/)
      assert.deepEqual(await answersOf([one], '/other'), ['same'])
      assert.deepEqual(await answersOf([one], '/lost'), ['404'])
      hung.child.kill('SIGCONT')
      await until(async () => (await answersOf([hung], '/other')).join() === 'same')
    })
  }
})

describe('a new app_key', () => {
  it('reaches three nodes one after the other, and nothing is refused or lost', async (t) => {
    const server = await startRedis(t)
    const own = { 'app.env': 'prod', 'admin.user': 'root', 'admin.password': 'e52d98c459819a11775936d8dfbb7929', 'admin.secret': 's' }
    const steps = [
      { app_key: 'old' },
      { app_key: 'old', app_key_previous: ['new'] },
      { app_key: 'new', app_key_previous: ['old'] },
      { app_key: 'new' },
    ]
    const form = {
      body: new URLSearchParams({ user: 'root', password: 'secret1' }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }
    const signIn = async ({ url }: TestApplication): Promise<string> => {
      const answer = await request(`${url}/svc-login`, { ...form, headers: { ...form.headers, origin: url } })
      assert.equal(answer.headers.location, '/svc-status', answer.text)
      return answer.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    }
    let nodes: TestApplication[] = []
    for (const at of [0, 1, 2]) nodes.push(await startNode(t, server, at === 0 ? { ...own, ...steps[0] } : { 'app.env': 'prod', ...steps[0] }))
    await until(async () => (await server.ask('HGET', key, 'version')) === '1')
    let count = 0
    for (const step of steps) {
      for (const at of [0, 1, 2]) {
        await nodes[at]?.app.stop()
        nodes = nodes.with(at, await startNode(t, server, { 'app.env': 'prod', ...(at === 0 && own), ...step }))
        await until(async () => (await Promise.all(nodes.map(isReady))).every((is) => is))
        const asked = nodes[(at + 1) % 3] as TestApplication
        const cookie = await signIn(asked)
        const headers = { cookie, origin: asked.url }
        assert.equal((await post(asked.url, '/svc-routes/add', route(`r${count}`), headers)).status, 200)
        assert.deepEqual(await answersOf(nodes, `/r${count}`), ['same'])
        count += 1
      }
    }
    assert.deepEqual(await answersOf(nodes, '/r0'), ['same'])
    assert.equal((await ask(nodes[2]?.url ?? '', '/svc-status', { cookie: await signIn(nodes[0] as TestApplication) })).status, 200)
    const refused = nodes.flatMap((node) => node.lines()).filter((line) => line.includes('[ERROR]'))
    assert.deepEqual(refused, [])
  })
})
