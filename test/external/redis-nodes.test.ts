// Servers that share an engine, and change as one: routes, trace switches, credentials.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { startSeveral } from '../cluster/several.ts'
import { startApplication, type Files, type TestApplication } from '../support/application.ts'
import { answersOf, ask, isReady, nodeFiles, nodesOf, post, route, tableOf, type Node, type StatusNode } from '../support/node-panel.ts'
import { readPage } from '../support/markdown.ts'
import { startRedis } from '../support/redis-server.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'

/** A server of one process in this one. */
function startOne(t: TestContext, url: string, files: Files = {}, config: object = {}): Promise<TestApplication> {
  return startApplication(t, { ...nodeFiles, ...files }, { 'shared.url': url, 'app.env': 'dev', ...config })
}

/** Two servers of one process and one of two, on one engine. */
async function startThree(t: TestContext, url: string, files: Files = {}, config: object = {}) {
  const one = await startOne(t, url, files, config)
  const two = await startOne(t, url, files, config)
  const several = await startSeveral(t, 2, { ...nodeFiles, ...files }, { 'shared.url': url, 'app.env': 'dev', ...config })
  return [one, two, several] as const
}

const adminJson = ({ folder }: { readonly folder: string }): string => join(folder, 'routes', 'admin.json')

describe('nodes', () => {
  it('act as one server: changes apply on every node before the response', async (t) => {
    const { url } = await startRedis(t)
    const nodes = await startThree(t, url)
    for (const [at, node] of nodes.entries()) {
      const name = `a${at}`
      assert.equal((await post(node.url, '/svc-routes/add', route(name))).text, `{"ok":true,"name":"${name}"}`)
      assert.deepEqual(await answersOf(nodes, `/${name}`), ['same'])
    }
    for (const [at, node] of nodes.entries()) {
      const other = nodes[(at + 1) % nodes.length] as Node
      assert.equal((await post(other.url, '/svc-routes/delete', { name: `a${at}` })).status, 200)
      assert.deepEqual(await answersOf(nodes, `/a${at}`), ['404'])
      assert.equal((await post(node.url, '/svc-routes/add', route('b'))).status, 200)
      assert.deepEqual(await answersOf(nodes, '/b'), ['same'])
      assert.equal((await post(node.url, '/svc-routes/delete', { name: 'file' })).status, 200)
      assert.deepEqual(await answersOf(nodes, '/file'), ['404'])
      assert.equal((await ask(other.url, '/svc-routes/reload')).status, 200)
      assert.deepEqual(await answersOf(nodes, '/b'), ['404'])
      assert.deepEqual(await answersOf(nodes, '/file'), ['same'])
    }
  })

  it('are separate per database', async (t) => {
    const { url } = await startRedis(t)
    const [one, two] = [await startOne(t, url), await startOne(t, url)]
    const apart = await startOne(t, `${url}?db=1`)
    assert.equal((await post(one.url, '/svc-routes/add', route('a'))).status, 200)
    await two.app.stop()
    // What it takes up of its own comes behind whatever it has heard of the others.
    assert.equal((await post(apart.url, '/svc-routes/add', route('b'))).status, 200)
    assert.deepEqual(await tableOf(apart), ['file /file', 'b /b'])
    assert.deepEqual(await tableOf(one), ['file /file', 'a /a'])
    assert.deepEqual((await nodesOf(apart.url)).map(({ self }) => self), [true])
    assert.deepEqual(apart.lines().filter((line) => line.includes('another node') || line.includes('has stopped')), [])
  })

  it('trust no message: it only makes them check the state', async (t) => {
    const { url, ask: redis } = await startRedis(t)
    const [one, two] = [await startOne(t, url), await startOne(t, url)]
    const forged = JSON.stringify({ version: 9, stamp: 'forged', routes: [{ name: 'evil', at: 9, record: route('evil') }] })
    for (const text of ['state', 'applied', 'x', '', forged]) assert.equal(await redis('PUBLISH', 'svc:0:nodes', text), '2')
    assert.equal((await post(one.url, '/svc-routes/add', route('a'))).status, 200)
    for (const node of [one, two]) assert.deepEqual(await tableOf(node), ['file /file', 'a /a'])
    assert.equal(await redis('HGET', 'svc:nodes:state', 'version'), '1')
  })

  it('of several applications can share an engine under different names', async (t) => {
    const { url, ask: redis } = await startRedis(t)
    const one = await startOne(t, url, {}, { app_key: 'one' })
    const other = await startOne(t, url, {}, { app_key: 'other', 'shared.name': 'shop-2' })
    assert.equal((await post(one.url, '/svc-routes/add', route('a'))).status, 200)
    assert.equal((await post(other.url, '/svc-routes/add', route('b'))).status, 200)
    assert.deepEqual([await tableOf(one), await tableOf(other)], [['file /file', 'a /a'], ['file /file', 'b /b']])
    assert.deepEqual([...new Set((await redis('KEYS', '*')).split('\n').map((key) => key.split(':')[0]))].sort(), ['shop-2', 'svc'])
  })

  it('share one app_key: a server with another one does not start, or is not ready when it learns this later', async (t) => {
    const redis = await startRedis(t)
    await startOne(t, redis.url, {}, { app_key: 'one' })
    const refusal = /shared engine|servers with another app_key have data there under the name "svc": give this server their app_key, or another shared\.name/
    await assert.rejects(startOne(t, redis.url, {}, { app_key: 'two' }), (error: Error) => error.name === 'ConfigError' && refusal.test(error.message))
    const previous = await startOne(t, redis.url, {}, { app_key: 'three', app_key_previous: ['one'] })
    assert.ok(await isReady(previous))

    await redis.kill()
    const late = await startOne(t, redis.url, {}, { app_key: 'late' })
    await redis.start()
    await until(async () => (await redis.ask('EXISTS', 'svc:app-key')) === '1') // Whoever comes first has the name.
    await until(async () => (await isReady(late)) !== (await isReady(previous)))
    const refused = (await isReady(late)) ? previous : late
    await until(() => refused.app.warnings().some((warning) => refusal.test(warning)))
  })

  it('accept one of two concurrent requests for a name', async (t) => {
    const { url } = await startRedis(t)
    const nodes = await startThree(t, url)
    for (let turn = 0; turn < 5; turn += 1) {
      const answers = await Promise.all(nodes.map((node, at) => post(node.url, '/svc-routes/add', route('same', { url: `/at${at}` }))))
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409])
      const won = answers.findIndex(({ status }) => status === 200)
      assert.deepEqual(await answersOf(nodes, `/at${won}`), ['same'])
      assert.deepEqual(await answersOf(nodes, `/at${(won + 1) % 3}`), ['404'])
      assert.equal((await post((nodes[turn % 3] as Node).url, '/svc-routes/delete', { name: 'same' })).status, 200)
    }
  })

  it('get the routes of the others when they start later, in the same order', async (t) => {
    const { url } = await startRedis(t)
    const one = await startOne(t, url)
    for (const name of ['c', 'a', 'b']) await post(one.url, '/svc-routes/add', route(name, { url: '/:any' }))
    await post(one.url, '/svc-routes/delete', { name: 'file' })
    await post(one.url, '/svc-routes/delete', { name: 'a' })
    await ask(one.url, '/svc-trace?mod=pool&on=0')
    const two = await startOne(t, url)
    const several = await startSeveral(t, 2, nodeFiles, { 'shared.url': url })
    assert.deepEqual(await tableOf(two), ['c /:any', 'b /:any'])
    assert.deepEqual(await tableOf(several), ['pid /pid', 'c /:any', 'b /:any'])
    for (const node of [one, two, several]) {
      assert.equal(((await ask(node.url, '/svc-trace')).json() as { pool: boolean }).pool, false)
      assert.ok(await isReady(node))
    }
    await ask(two.url, '/svc-routes/reload')
    const three = await startOne(t, url)
    assert.deepEqual(await tableOf(three), ['file /file'])
  })

  it('switch the trace everywhere, and each resets it, even when the requested node is gone', async (t) => {
    const { url } = await startRedis(t)
    const nodes = await startThree(t, url)
    const asked = await startSeveral(t, 1, nodeFiles, { 'shared.url': url })
    const isOn = async ({ url }: Node): Promise<boolean> => ((await ask(url, '/svc-trace')).json() as { pool: boolean }).pool
    // A switch may be back before it is asked for: the logs tell that it was made.
    const haveLogged = (some: readonly { lines(): string[] }[], text: string) =>
      until(() => some.every((node) => node.lines().filter((line) => line.includes(text)).length === 1))
    // The primary of several processes logs what each of them does at a time of its own.
    const becomes = (on: boolean) => until(async () => (await Promise.all(nodes.map(isOn))).every((is) => is === on))
    assert.equal((await ask(asked.url, '/svc-trace?mod=pool&on=0&ttl=2')).status, 200)
    asked.child.kill('SIGKILL')
    await haveLogged(nodes, 'applied trace.set of another node: pool off')
    await haveLogged(nodes, 'trace of pool reverted to on')
    await becomes(true)
    assert.equal((await ask(nodes[2].url, '/svc-trace?mod=pool&on=0')).status, 200)
    assert.deepEqual(await Promise.all(nodes.map(isOn)), [false, false, false])
    assert.equal((await ask(nodes[0].url, '/svc-trace?mod=pool&on=1&ttl=1')).status, 200)
    await haveLogged(nodes.slice(1), 'applied trace.set of another node: pool on')
    await haveLogged(nodes, 'trace of pool reverted to off')
    await becomes(false)
  })

  it('log each trace switch on each node, even of the module that logs it', async (t) => {
    const { url } = await startRedis(t)
    const [asked, other] = [await startOne(t, url), await startOne(t, url)]
    const modules = Object.keys((await ask(asked.url, '/svc-trace')).json() as object)
    const said = (word: string): string[] =>
      other.lines().flatMap((line) => new RegExp(`applied trace\\.set of another node: (\\w+) ${word}$`).exec(line)?.[1] ?? [])
    for (const [on, word] of [[0, 'off'], [1, 'on']] as const) {
      await ask(asked.url, `/svc-trace?mod=all&on=${on}`)
      assert.deepEqual(said(word).toSorted(), modules.toSorted())
    }
  })

  it('keep a persisted route over a reload and a restart, even when only one has it in its file', async (t) => {
    const { url } = await startRedis(t)
    const [one, two, several] = await startThree(t, url)
    const nodes = [one, two, several]
    assert.equal((await post(two.url, '/svc-routes/add', route('kept', { persist: true }))).status, 200)
    assert.deepEqual(nodes.map((node) => existsSync(adminJson(node))), [false, true, false])
    for (const node of nodes) {
      assert.equal((await ask(node.url, '/svc-routes/reload')).status, 200)
      assert.deepEqual(await answersOf(nodes, '/kept'), ['same'])
    }
    const later = await startOne(t, url)
    assert.deepEqual(await answersOf([later], '/kept'), ['same'])
    assert.equal((await post(later.url, '/svc-routes/delete', { name: 'kept' })).status, 200)
    assert.equal(readFileSync(adminJson(two), 'utf8').includes('kept'), false)
    await ask(one.url, '/svc-routes/reload')
    assert.deepEqual(await answersOf([...nodes, later], '/kept'), ['404'])
  })

  it('remove a route that was deleted meanwhile from their file when they start', async (t) => {
    const { url } = await startRedis(t)
    const one = await startOne(t, url)
    assert.equal((await post(one.url, '/svc-routes/add', route('kept', { persist: true }))).status, 200)
    const records = readFileSync(adminJson(one), 'utf8')
    await post(one.url, '/svc-routes/delete', { name: 'kept' })
    await ask(one.url, '/svc-routes/reload')
    const late = await startOne(t, url, { 'routes/admin.json': records })
    assert.deepEqual(await answersOf([late], '/kept'), ['404'])
    assert.equal(readFileSync(adminJson(late), 'utf8').includes('kept'), false)
    for (const node of [one, late]) writeFileSync(adminJson(node), records) // Somebody wants it back.
    await ask(one.url, '/svc-routes/reload')
    const later = await startOne(t, url, { 'routes/admin.json': records })
    assert.deepEqual(await answersOf([one, late, later], '/kept'), ['same'])
  })

  it('may share one folder', async (t) => {
    const { url } = await startRedis(t)
    const one = await startOne(t, url)
    const two = await startOne(t, url, {}, { 'paths.routes': join(one.folder, 'routes'), 'paths.root': one.folder })
    for (const [here, there] of [[one, two], [two, one]] as const) {
      assert.equal((await post(here.url, '/svc-routes/add', route('kept', { persist: true }))).status, 200)
      await ask(there.url, '/svc-routes/reload')
      assert.deepEqual(await answersOf([one, two], '/kept'), ['same'])
      assert.equal((await post(there.url, '/svc-routes/delete', { name: 'kept' })).status, 200)
      assert.deepEqual(await answersOf([one, two], '/kept'), ['404'])
    }
  })

  it('report the node that has not applied a change, which is not ready until it is in sync', async (t) => {
    const { url } = await startRedis(t)
    const [one, two, several] = await startThree(t, url)
    const name = (await nodesOf(two.url)).find(({ self }) => self)?.name ?? ''
    await until(async () => (await nodesOf(one.url)).length === 3)
    two.write({ 'routes/file.json': '{' })
    const answer = await ask(one.url, '/svc-routes/reload')
    assert.equal(answer.status, 500)
    assert.match(answer.text, new RegExp(`^{"ok":false,"error":"routes.reload has taken effect, but not everywhere: node ${name}: Cannot reload the routes`))
    assert.deepEqual([await isReady(one), await isReady(two), await isReady(several)], [true, false, true])
    assert.match(two.app.warnings().join(), /this node is out of sync: Cannot reload the routes/)
    await until(async () => (await nodesOf(several.url)).find((node) => node.name === name)?.state === 'behind')
    const refused = await post(two.url, '/svc-routes/add', route('a'))
    assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1'])
    assert.equal((await post(one.url, '/svc-routes/add', route('b'))).status, 500)
    two.write({ 'routes/file.json': nodeFiles['routes/file.json'] })
    await until(() => isReady(two))
    assert.deepEqual(await answersOf([one, two, several], '/b'), ['same'])
    const errors = two.lines().filter((line) => line.includes('[ERROR]'))
    assert.equal(errors.length, 1, errors.join('\n'))
  })

  it('keep their workers when a reload fails only there', async (t) => {
    const { url } = await startRedis(t)
    const [one, , several] = await startThree(t, url)
    const before = [...(await several.clients()).keys()]
    const file = join(several.folder, 'routes', 'file.json')
    const right = readFileSync(file, 'utf8')
    writeFileSync(file, '{')
    assert.equal((await ask(one.url, '/svc-routes/reload')).status, 500)
    assert.equal(await isReady(several), false)
    assert.deepEqual(await answersOf([several], '/file'), ['same'])
    writeFileSync(file, right)
    await until(() => isReady(several))
    assert.deepEqual([...(await several.clients()).keys()].sort(), before.sort())
  })

  it('show the errors of all nodes by cause, and clear them everywhere on request', async (t) => {
    const { url, ask: redis } = await startRedis(t)
    const failing = {
      'routes/bad.json': [{ name: 'bad', url: '/bad', action: 'bad.mjs' }],
      'bad.mjs': "export default () => { throw new Error('Order 7 is gone') }",
    }
    const nodes = await startThree(t, url, failing)
    for (const node of nodes) for (const _ of [1, 2]) assert.equal((await ask(node.url, '/bad')).status, 500)
    const errorsOf = async ({ url: at }: Node): Promise<[string, number][]> => {
      const groups = (await ask(at, '/svc-errors?format=json')).json() as { message: string; count: number }[]
      return groups.map(({ message, count }) => [message, count])
    }
    const countOf = async (node: Node): Promise<number> => (await errorsOf(node)).reduce((sum, [, count]) => sum + count, 0)
    for (const node of nodes) await until(async () => (await countOf(node)) === 6)
    for (const node of nodes) for (const [message] of await errorsOf(node)) assert.equal(message, 'Error: Order # is gone')
    // What the engine loses is written again.
    const keys = async (): Promise<string[]> => (await redis('KEYS', 'svc:nodes:errors:*')).split('\n')
    const lost = await keys()
    assert.equal(lost.length, 3)
    await redis('DEL', ...lost)
    await until(async () => (await keys()).length === 3)
    for (const node of nodes) await until(async () => (await countOf(node)) === 6)
    assert.equal((await post(nodes[2].url, '/svc-errors/clear', {})).status, 200)
    assert.deepEqual(await errorsOf(nodes[2]), [])
    for (const node of nodes) await until(async () => (await countOf(node)) === 0)
    assert.equal((await ask(nodes[0].url, '/bad')).status, 500)
    for (const node of nodes) await until(async () => (await countOf(node)) === 1)
  })

  it('ignore invalid error groups in the engine', async (t) => {
    const { url, ask: redis } = await startRedis(t)
    const [one, two] = [await startOne(t, url), await startOne(t, url)]
    const keys = (await redis('HKEYS', 'svc:nodes')).split('\n')
    assert.equal(keys.length, 2)
    for (const node of [one, two]) await until(async () => (await nodesOf(node.url)).length === 2)
    const minutes = Array.from({ length: 60 }, () => 0)
    const good = {
      place: 'a', message: 'good', stack: '', count: 1, first_at: 1, last_at: 1, routes: [], requests: [], minutes,
    }
    const wrong = [null, 7, {}, { ...good, count: 'x' }, { ...good, routes: [1] }, { ...good, minutes: {} }]
    for (const key of keys) await redis('SET', `svc:nodes:errors:${key}`, JSON.stringify([...wrong, good]))
    for (const node of [one, two]) {
      const groups = (await ask(node.url, '/svc-errors?format=json')).json() as { message: string }[]
      assert.deepEqual(groups.map(({ message }) => message), ['good'])
      assert.equal((await request(`${node.url}/svc-errors`)).status, 200)
    }
    for (const key of keys) await redis('SET', `svc:nodes:errors:${key}`, '{')
    assert.equal((await ask(one.url, '/svc-errors?format=json')).text, '[]')
  })

  it('need no more rights than docs/security.md grants', async (t) => {
    const rights = /needs no more than `([^`]+)`/.exec(readPage('docs/security.md').prose)?.[1]?.split(' ') ?? []
    const server = await startRedis(t)
    await server.ask('ACL', 'SETUSER', 'svc', 'on', '>secret', ...rights)
    const url = server.url.replace('redis+unix://', 'redis+unix://svc:secret@')
    const nodes = [await startOne(t, url), await startOne(t, url)] as const
    assert.equal((await post(nodes[0].url, '/svc-routes/add', route('a'))).status, 200)
    assert.deepEqual(await answersOf(nodes, '/a'), ['same'])
    for (const { app } of nodes) assert.deepEqual(app.warnings(), [])
    await server.ask('ACL', 'SETUSER', 'svc', '-evalsha')
    await until(() => /^the shared engine refuses the list of nodes: NOPERM .*evalsha/.test(nodes[0].app.warnings().join()))
    assert.equal(await isReady(nodes[0]), false)
    await server.ask('ACL', 'SETUSER', 'svc', '+evalsha')
    await until(async () => (await Promise.all(nodes.map(isReady))).every((is) => is))
  })

  it('send only one command per beat', async (t) => {
    const server = await startRedis(t)
    const nodes = [await startOne(t, server.url), await startOne(t, server.url)] as const
    await until(async () => (await nodesOf(nodes[0].url)).length === 2)
    await server.ask('CONFIG', 'RESETSTAT')
    /** How often each command was called; those of a script count as well. */
    const calls = async (): Promise<ReadonlyMap<string, number>> => {
      const found = (await server.ask('INFO', 'commandstats')).matchAll(/cmdstat_([^:]+):calls=(\d+)/g)
      return new Map([...found].map(([, name = '', count]) => [name, Number(count)]))
    }
    await until(async () => ((await calls()).get('hset') ?? 0) >= 6)
    const counted = await calls()
    assert.equal(counted.get('evalsha'), counted.get('hset'))
    const others = ['eval', 'set', 'get', 'publish', 'hdel'].filter((name) => counted.has(name))
    assert.deepEqual(others, [])
  })

  it('are listed with their details', async (t) => {
    const { url } = await startRedis(t)
    const [one, two, several] = await startThree(t, url)
    const areAll = (nodes: readonly StatusNode[]): boolean =>
      nodes.filter(({ state }) => state === 'ready').map(({ processes }) => processes).sort().join() === '1,1,2'
    for (const { url: at } of [one, two, several]) await until(async () => areAll(await nodesOf(at)))
    for (const node of [one, two, several]) {
      const nodes = await nodesOf(node.url)
      const port = new URL(node.url).port
      assert.equal(nodes.filter(({ self }) => self).map((each) => each.name.split(':')[1]).join(), port)
    }
    const metrics = await ask(several.url, '/svc-metrics')
    assert.match(metrics.text, /^svc_nodes_live 3$/m)
    several.child.kill('SIGTERM')
    await several.ended
    await until(async () => (await nodesOf(one.url)).length === 2)
    assert.ok(one.lines().some((line) => /node \S+ has stopped/.test(line)))
  })
})

describe('the admin of several nodes', () => {
  const form = (url: string, fields: Record<string, string>) => ({
    body: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: url },
  })
  const credentials = { user: 'root', password: 'secret1' }
  const prod = { 'app.env': 'prod' }
  const hash = 'e52d98c459819a11775936d8dfbb7929' // MD5 of secret1
  const own = { ...prod, 'admin.user': 'root', 'admin.password': hash, 'admin.secret': 'of one' }

  async function cookieOf({ url }: Node): Promise<string> {
    const answer = await request(`${url}/svc-login`, form(url, credentials))
    assert.equal(answer.headers.location, '/svc-status', answer.text)
    return answer.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
  }

  async function letIn(nodes: readonly Node[], cookie: string): Promise<readonly number[]> {
    return Promise.all(nodes.map(async ({ url }) => (await ask(url, '/svc-status', { cookie })).status))
  }

  it('is shared: after setup on one node, sign-in works on all', async (t) => {
    const { url } = await startRedis(t)
    const nodes = await startThree(t, url, {}, prod)
    const [, two, several] = nodes
    const setup = form(several.url, { ...credentials, password2: 'secret1' })
    assert.equal((await request(`${several.url}/svc-setup`, setup)).headers.location, '/svc-login')
    for (const node of nodes) assert.deepEqual(await letIn(nodes, await cookieOf(node)), [200, 200, 200])
    const again = form(two.url, { user: 'other', password: 'other123', password2: 'other123' })
    assert.equal((await request(`${two.url}/svc-setup`, again)).headers.location, '/svc-login')
    const later = await startOne(t, url, {}, prod)
    assert.deepEqual(await letIn([later], await cookieOf(two)), [200])
    assert.deepEqual(later.lines().filter((line) => line.includes('not set up')), [])
  })

  it('comes from the node that has one in its configuration', async (t) => {
    const { url } = await startRedis(t)
    const one = await startOne(t, url, {}, prod)
    const two = await startOne(t, url, {}, own)
    await until(async () => (await ask(one.url, '/svc-status')).headers.location?.startsWith('/svc-login') === true)
    assert.deepEqual(await letIn([one, two], await cookieOf(one)), [200, 200])
    const noSecret = await startOne(t, url, {}, { ...own, 'admin.secret': '' })
    assert.deepEqual(await letIn([noSecret], await cookieOf(one)), [200])
  })

  it('is kept by a node with another one, with a warning', async (t) => {
    const { url } = await startRedis(t)
    const one = await startOne(t, url, {}, own)
    await until(async () => (await nodesOf2(one, await cookieOf(one)))[0]?.change === 1)
    const two = await startOne(t, url, {}, { ...own, 'admin.secret': 'of two' })
    assert.deepEqual(await letIn([one, two], await cookieOf(one)), [200, 302])
    assert.match(two.app.warnings().join(), /^admin.user, admin.password, admin.secret and admin.totp here differ from those that the other nodes share/)
    assert.deepEqual(one.app.warnings(), [])
    assert.ok(await isReady(two))
  })

  async function nodesOf2({ url }: Node, cookie: string): Promise<readonly { change: number }[]> {
    return ((await ask(url, '/svc-status', { cookie })).json() as { nodes: { change: number }[] }).nodes
  }

  it('gets one secret when none had one', async (t) => {
    const { url } = await startRedis(t)
    const nodes = [await startOne(t, url, {}, { ...own, 'admin.secret': '' }), await startOne(t, url, {}, { ...own, 'admin.secret': '' })]
    const cookies = await Promise.all(nodes.map(cookieOf))
    for (const cookie of cookies) assert.deepEqual(await letIn(nodes, cookie), [200, 200])
  })
})
