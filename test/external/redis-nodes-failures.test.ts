// What becomes of nodes that hang, that are killed, and that are cut off, and of an engine that is away or has lost its data.
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { startSeveral, type Several } from '../cluster/several.ts'
import { startApplication, type TestApplication } from '../support/application.ts'
import { answersOf, ask, isReady, nodeFiles, nodesOf, post, route, tableOf, type Node } from '../support/node-panel.ts'
import { openRedis, startRedis, type RedisServer } from '../support/redis-server.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

/** Keeps all it has answered over a kill. */
const durable = ['--appendonly', 'yes', '--appendfsync', 'always']

/** `slow.mjs` makes a file `begun`, and holds up whoever loads it until there is a file `go`; other actions are served. */
const slowFiles = {
  ...nodeFiles,
  'slow.mjs': `import { existsSync, writeFileSync } from 'node:fs'
    import { setTimeout as delay } from 'node:timers/promises'
    writeFileSync(new URL('./begun', import.meta.url), '')
    while (!existsSync(new URL('./go', import.meta.url))) await delay(5)
    export default () => 'slow'`,
}

function startHere(t: TestContext, url: string, files = nodeFiles): Promise<TestApplication> {
  return startApplication(t, files, { 'shared.url': url, 'app.env': 'dev' })
}

/** A server in a process of its own. */
function startApart(t: TestContext, url: string, count = 1, files = nodeFiles): Promise<Several> {
  return startSeveral(t, count, files, { 'shared.url': url })
}

/** The way to a server. It passes on everything until it is told otherwise. */
interface Way {
  readonly url: string
  /** Keeps replies from now on. */
  keep(): void
  /** Passes on what was kept. */
  release(): void
  /** Ends all connections, and drops what was kept. */
  cut(): void
  /** Cuts, and takes no connections until `open`. */
  close(): void
  open(): void
}

function startWay(t: TestContext, to: string): Way {
  const path = join(temporaryFolder(), 'way.sock')
  const sockets = new Set<Socket>()
  let kept: (() => void)[] = []
  let keeps = false
  const cut = (): void => {
    keeps = false
    kept = []
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  const pass = (client: Socket): void => {
    const engine = connect(to)
    client.pipe(engine)
    engine.on('data', (chunk) => {
      if (keeps) kept.push(() => client.write(chunk))
      else client.write(chunk)
    })
    for (const [socket, other] of [[client, engine], [engine, client]] as const) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => other.destroy()) // One that was cut may have failed.
    }
  }
  let server = createServer(pass).listen(path)
  t.after(() => {
    cut()
    server.close()
  })
  return {
    url: `redis+unix://${path}`,
    keep: () => void (keeps = true),
    release() {
      keeps = false
      for (const send of kept.splice(0)) send()
    },
    cut,
    close() {
      cut()
      server.close()
    },
    open: () => void (server = createServer(pass).listen(path)),
  }
}

const tableWithoutPid = async (node: Node): Promise<string> => (await tableOf(node)).filter((line) => line !== 'pid /pid').join()

/** Waits until all serve the same routes and are ready. */
async function agreed(nodes: readonly Node[]): Promise<void> {
  await until(async () => {
    const tables = await Promise.all(nodes.map(tableWithoutPid))
    const ready = await Promise.all(nodes.map(isReady))
    return new Set(tables).size === 1 && ready.every((is) => is)
  })
}

describe('a node', () => {
  it('that hangs is reported after five seconds, and is in sync again when it resumes', async (t) => {
    const { url } = await startRedis(t)
    const one = await startHere(t, url)
    for (const count of [1, 2]) {
      const hung = await startApart(t, url, count)
      const port = new URL(hung.url).port
      await until(async () => (await nodesOf(one.url)).some(({ name }) => name.endsWith(`:${port}`)))
      hung.child.kill('SIGSTOP')
      const answer = await post(one.url, '/svc-routes/add', route(`a${count}`))
      assert.equal(answer.status, 500)
      assert.match(answer.text, new RegExp(`"error":"routes.add has taken effect, but not everywhere: node \\S+:${port}: it did not answer within 5 s"`))
      assert.deepEqual(await answersOf([one], `/a${count}`), ['same'])
      hung.child.kill('SIGCONT')
      await agreed([one, hung])
      hung.child.kill('SIGTERM')
      await hung.ended
    }
  })

  it('that is killed while it applies a change is no longer awaited', async (t) => {
    const { url } = await startRedis(t)
    const [one, killed] = [await startHere(t, url), await startApart(t, url)]
    killed.child.kill('SIGSTOP')
    const added = post(one.url, '/svc-routes/add', route('a'))
    await until(async () => (await answersOf([one], '/a')).join() === 'same')
    killed.child.kill('SIGKILL')
    assert.equal((await added).status, 200)
    await until(async () => (await nodesOf(one.url)).some(({ state }) => state === 'gone'))
    assert.equal((await nodesOf(one.url)).length, 2)
  })

  it('that is killed during a change blocks no other node, and leaves nothing behind', async (t) => {
    const { url } = await startRedis(t)
    const one = await startHere(t, url)
    const killed = await startApart(t, url, 1, slowFiles)
    const never = post(killed.url, '/svc-routes/add', route('slow', { action: 'slow.mjs' })).catch((error: Error) => error.message)
    await changeBegun(killed)
    killed.child.kill('SIGKILL')
    assert.equal(typeof (await never), 'string')
    assert.equal((await post(one.url, '/svc-routes/add', route('a'))).status, 200)
    assert.deepEqual(await answersOf([one], '/slow'), ['404'])
  })

  it('that was suspended during a change starts over from the newer state of the others', async (t) => {
    const { url } = await startRedis(t)
    const one = await startHere(t, url)
    const still = await startApart(t, url, 1, slowFiles)
    const late = post(still.url, '/svc-routes/add', route('slow', { action: 'slow.mjs' }))
    await changeBegun(still)
    still.child.kill('SIGSTOP')
    // Whether the answer names the one that stands still depends on when it was heard of last.
    await post(one.url, '/svc-routes/add', route('a'))
    writeFileSync(`${still.folder}/go`, '')
    still.child.kill('SIGCONT')
    assert.equal((await late).status, 200)
    await agreed([one, still])
    assert.deepEqual(await tableOf(one), ['file /file', 'a /a', 'slow /slow'])
    assert.deepEqual(await answersOf([one, still], '/a'), ['same'])
  })
})

/** Resolves when a node loads `slow.mjs`. */
function changeBegun({ folder }: Several): Promise<void> {
  return until(() => existsSync(`${folder}/begun`))
}

describe('an engine', () => {
  async function startAll(t: TestContext, server: RedisServer) {
    const nodes = [await startHere(t, server.url), await startHere(t, server.url), await startApart(t, server.url, 2)] as const
    for (const name of ['a', 'b']) assert.equal((await post(nodes[0].url, '/svc-routes/add', route(name))).status, 200)
    await ask(nodes[1].url, '/svc-trace?mod=pool&on=0')
    return nodes
  }

  it('that is away makes changes fail with a clear error', async (t) => {
    const server = await startRedis(t, { args: durable })
    const nodes = await startAll(t, server)
    await server.kill()
    await until(async () => (await Promise.all(nodes.map(isReady))).every((is) => !is))
    for (const node of nodes) {
      const refused = [
        await post(node.url, '/svc-routes/add', route('c')),
        await post(node.url, '/svc-routes/delete', { name: 'a' }),
        await ask(node.url, '/svc-routes/reload'),
        await ask(node.url, '/svc-trace?mod=pool&on=1'),
      ]
      for (const { status, headers, text } of refused) {
        assert.deepEqual([status, headers['retry-after']], [503, '1'], text)
        assert.equal((JSON.parse(text) as { error: string }).error, 'shared_away')
      }
      assert.equal((await ask(node.url, '/svc-cache-clear')).status, 200)
      assert.equal((await ask(node.url, '/svc-bench-start')).status, 200)
    }
    assert.deepEqual(await answersOf(nodes, '/a'), ['same'])
    const several = nodes[2]
    several.child.kill('SIGHUP')
    await until(() => several.stdout().includes('Reopened'))
    await until(() => /\[ERROR\] \[server\] SIGHUP: .* is away: /.test(several.stdout()))
    await server.start()
    await agreed(nodes)
    assert.deepEqual(await answersOf(nodes, '/c'), ['404'])
    assert.equal((await post(several.url, '/svc-routes/add', route('c'))).status, 200)
    assert.deepEqual(await answersOf(nodes, '/c'), ['same'])
  })

  it('that refuses the list of nodes keeps them from being ready, with a warning', async (t) => {
    const server = await startRedis(t)
    const nodes = await startAll(t, server)
    const warnings = async ({ url }: Node): Promise<string> => JSON.stringify(((await ask(url, '/svc-status')).json() as { warnings: string[] }).warnings)
    await server.ask('CONFIG', 'SET', 'maxmemory', '1')
    await until(async () => (await Promise.all(nodes.map(isReady))).every((is) => !is))
    for (const node of nodes) assert.match(await warnings(node), /the shared engine refuses the list of nodes: OOM /)
    await server.ask('CONFIG', 'SET', 'maxmemory', '0')
    await agreed(nodes)
    for (const node of nodes) assert.doesNotMatch(await warnings(node), /OOM/)
  })

  it('that was suspended, or has cut the connections, has all nodes back within two seconds', async (t) => {
    const server = await startRedis(t)
    const nodes = await startAll(t, server)
    const breaks = [
      () => server.ask('CLIENT', 'KILL', 'TYPE', 'pubsub'),
      () => server.ask('CLIENT', 'KILL', 'TYPE', 'normal'),
      async () => {
        server.pause()
        await until(async () => !(await isReady(nodes[0])))
        server.resume()
      },
    ]
    for (const [at, cut] of breaks.entries()) {
      await cut()
      const began = performance.now()
      await until(async () => (await post(nodes[1].url, '/svc-routes/add', route(`r${at}`))).status === 200)
      await agreed(nodes)
      t.diagnostic(`break ${at}: all agreed after ${Math.round(performance.now() - began)} ms`)
      assert.deepEqual(await answersOf(nodes, `/r${at}`), ['same'])
    }
  })

  it('that has lost its data is restored from the nodes', async (t) => {
    const server = await startRedis(t)
    const nodes = await startAll(t, server)
    const losses = [
      () => server.ask('FLUSHALL'),
      async () => {
        await server.kill()
        await server.start()
      },
    ]
    for (const [at, lose] of losses.entries()) {
      await lose()
      const began = performance.now()
      await until(async () => (await server.ask('HGET', 'svc:nodes:state', 'content')).includes('"/b"'))
      await agreed(nodes)
      t.diagnostic(`loss ${at}: all agreed after ${Math.round(performance.now() - began)} ms`)
      const late = await startHere(t, server.url)
      assert.deepEqual(await answersOf([...nodes, late], '/b'), ['same'])
      assert.equal(((await ask(late.url, '/svc-trace')).json() as { pool: boolean }).pool, false)
      assert.equal((await post(late.url, '/svc-routes/add', route(`l${at}`))).status, 200)
      assert.deepEqual(await answersOf([...nodes, late], `/l${at}`), ['same'])
    }
  })

  /** Adds a route on one node, which must not answer before another one, that is stopped, goes on. */
  async function assertWaitsFor(stopped: Several, one: Node, server: RedisServer): Promise<void> {
    let isAnswered = false
    const added = post(one.url, '/svc-routes/add', route('a')).finally(() => (isAnswered = true))
    await until(async () => (await server.ask('HGET', 'svc:nodes:state', 'version')) === '1')
    await request(`${one.url}/file`) // The answer would have come by now.
    assert.equal(isAnswered, false)
    stopped.child.kill('SIGCONT')
    assert.equal((await added).status, 200)
    assert.deepEqual(await answersOf([stopped], '/a'), ['same'])
  }

  it('that has also lost the list of nodes does not make a node believe it is alone', async (t) => {
    const server = await startRedis(t)
    const [one, other] = [await startHere(t, server.url), await startApart(t, server.url)]
    await until(async () => (await nodesOf(one.url)).filter(({ state }) => state === 'ready').length === 2)
    other.child.kill('SIGSTOP')
    await server.ask('FLUSHALL')
    await assertWaitsFor(other, one, server)
  })

  for (const awayMs of [0, 2600]) {
    it(`that lost the list while a node got no replies for ${awayMs} ms does not make it believe it is alone`, async (t) => {
      const server = await startRedis(t)
      const way = startWay(t, join(server.folder, 'redis.sock'))
      const [one, other] = [await startHere(t, way.url), await startApart(t, server.url)]
      await until(async () => (await nodesOf(one.url)).filter(({ state }) => state === 'ready').length === 2)
      other.child.kill('SIGSTOP')
      way.keep()
      const began = performance.now()
      await server.ask('FLUSHALL')
      await until(async () => (await server.ask('HLEN', 'svc:nodes')) === '1' && performance.now() - began >= awayMs)
      way.cut()
      await until(() => isReady(one))
      await assertWaitsFor(other, one, server)
    })
  }

  it('that lost its data accepts no change that replaces an acknowledged one', async (t) => {
    const server = await startRedis(t)
    const ways = [0, 1].map(() => startWay(t, join(server.folder, 'redis.sock'))) as [Way, Way]
    const [one, cut] = [await startHere(t, ways[0].url), await startHere(t, ways[1].url)]
    assert.equal((await post(one.url, '/svc-routes/add', route('a'))).status, 200)
    ways[1].close()
    assert.equal((await post(one.url, '/svc-routes/add', route('answered'))).status, 200)
    ways[0].keep()
    await server.ask('FLUSHALL')
    ways[1].open()
    await until(() => isReady(cut))
    const other = post(cut.url, '/svc-routes/add', route('other'))
    await until(async () => (await server.ask('HGET', 'svc:nodes:state', 'version')) === '2')
    ways[0].release()
    assert.equal((await other).status, 500)
    await agreed([one, cut])
    assert.deepEqual(await tableOf(cut), ['file /file', 'a /a', 'answered /answered'])
  })

  it('that becomes available late is used by a node that started without it', async (t) => {
    const server = await startRedis(t)
    const one = await startHere(t, server.url)
    await server.kill()
    const late = [await startHere(t, server.url), await startApart(t, server.url, 2)]
    for (const node of late) {
      assert.equal(await isReady(node), false)
      assert.deepEqual(await answersOf([node], '/file'), ['same'])
    }
    await server.start()
    await until(async () => (await Promise.all([one, ...late].map(isReady))).every((is) => is))
    assert.equal((await post(one.url, '/svc-routes/add', route('a'))).status, 200)
    assert.deepEqual(await answersOf([one, ...late], '/a'), ['same'])
  })
})

describe('an engine at maxclients', () => {
  it('is reported with the reason and advice, for commands and for messages', async (t) => {
    const server = await startRedis(t)
    const redis = openRedis(t, server.url)
    await redis.command('CONFIG', 'SET', 'maxclients', '2')
    const one = await startHere(t, server.url) // It has one of its two connections.
    const reason = /ERR max number of clients reached \(raise its maxclients, or let fewer connect: each process of svc needs two connections\)/
    const messages = /^messages of the shared engine .*/m
    await until(() => reason.test(messages.exec(one.app.warnings().join('\n'))?.[0] ?? ''))
    assert.match(one.lines().join('\n'), new RegExp(`WARN .*messages of the shared engine .* do not arrive, .*${reason.source}`))
    const two = await startHere(t, server.url) // It has none.
    assert.match(two.app.warnings().join('\n'), new RegExp(`the shared engine .* is away: ${reason.source}`))
    assert.match(two.lines().join('\n'), new RegExp(`WARN .*the shared engine .* is away: ${reason.source}`))
    await redis.command('CONFIG', 'SET', 'maxclients', '100')
    await until(async () => (await Promise.all([one, two].map(isReady))).every((is) => is))
    await until(() => one.app.warnings().length === 0 && two.app.warnings().length === 0)
    assert.match(one.lines().join('\n'), /INFO .*messages of the shared engine .* arrive again/)
  })
})
