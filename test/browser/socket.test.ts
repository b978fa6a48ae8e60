// The WebSockets of `/svc-live.js`, in Chromium over plain HTTP.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { startApplication, type TestApplication } from '../support/application.ts'
import { openPage, type Page } from '../support/browser.ts'
import { until } from '../support/until.ts'

const page = `<!doctype html>
<title>News</title>
<script type="module">
  import { socket } from '/svc-live.js'
  window.heard = []
  window.states = []
  let running = 0
  const hear = async (what) => {
    running += 1
    await new Promise((resolve) => setTimeout(resolve))
    heard.push(running === 1 ? what : 'at the same time')
    running -= 1
  }
  window.follow = (url, more) => socket(url, {
    onEvent: (data, { id }) => hear(data),
    onGap: ({ last_id }) => hear('gap ' + last_id),
    onPresence: (members) => hear('members ' + members.map(({ id }) => id).join()),
    onMessage: (data) => hear(typeof data === 'string' ? 'text ' + data : 'bytes ' + [...new Uint8Array(data)].join()),
    onState: (state) => states.push(state),
    ...more,
  })
  const { url = 'news', ...options } = Object.fromEntries(new URLSearchParams(location.search))
  window.news = follow(url, options)
</script>`
const files = {
  'routes/a.json': [
    { name: 'page', url: '/', method: 'GET', action: 'page.html' },
    { name: 'news', url: '/news', action: 'news.mjs' },
    { name: 'chat', url: '/chat', action: 'chat.mjs' },
    { name: 'answer', url: '/answer/:status', action: 'chat.mjs', middleware: 'answer' },
  ],
  'page.html': page,
  'news.mjs': `
    export const websocket = {
      open(ws, { channel, presence, query }) {
        if (query.has('id')) presence(channel('news'), { id: query.get('id') })
        ws.follow(channel('news'), { since: query.get('since') })
      },
    }`,
  'chat.mjs': `
    export const websocket = {
      open(ws, { channel, query }) {
        ws.state.channel = channel('codes')
        if (query.has('hello')) ws.send(query.get('hello'))
        if (query.has('code')) ws.close(Number(query.get('code')))
      },
      message: (ws, data) => ws.send(data),
      close: (ws, code) => ws.state.channel.publish(code),
    }`,
  'routes/middleware/config.json': { load: ['own.mjs'] },
  'routes/middleware/own.mjs': `
    export const answer = (ctx, next) => {
      if (ctx.params.status === '302') return ctx.redirect('/')
      if (ctx.params.status === '200') return ctx.html('<p>A page</p>')
      return ctx.json({}, Number(ctx.params.status))
    }`,
}

const heard = (tab: Page): Promise<unknown[]> => tab.evaluate('heard') as Promise<unknown[]>
const count = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at)
const isOpen = (tab: Page): Promise<void> => until(async () => (await tab.evaluate('window.news?.state')) === 'open')

async function publish({ app }: TestApplication, from: number, to: number): Promise<void> {
  for (const number of count(from, to)) await app.channel('news').publish(number)
}

async function start(t: TestContext, query = '') {
  const tab = await openPage(t)
  const server = await startApplication(t, files, { 'app.env': 'dev' })
  await tab.open(`${server.url}/${query}`)
  await isOpen(tab)
  return { server, tab }
}

/** Stops a server as an operator does, and starts it again on its port. */
async function restart(t: TestContext, { app, folder, port }: TestApplication): Promise<TestApplication> {
  await app.stop()
  return startApplication(t, {}, { 'app.env': 'dev', 'server.port': port }, { folder })
}

/** The open WebSockets of a server. */
const open = async ({ url }: TestApplication): Promise<number> => {
  const { pool_ws: pool } = (await (await fetch(`${url}/svc-status`)).json()) as { pool_ws: { active: number } }
  return pool.active
}

describe('a WebSocket of /svc-live.js', () => {
  it('receives gaps, events and members once, in order, one after the other', async (t) => {
    const { server, tab } = await start(t, '?since=0&url=/news?id=ann')
    await publish(server, 1, 100)
    await until(async () => (await heard(tab)).includes(100))
    const last = await server.app.channel('news').last_id
    const [members, ...others] = await heard(tab)
    assert.equal(members, 'members ann')
    // The server then reports that she has joined.
    assert.deepEqual(others.filter((one) => one !== members), [`gap ${last - 100}`, ...count(1, 100)])
    assert.equal(await tab.evaluate('news.lastId'), last)
  })

  it('misses and doubles nothing across a restart of the server', async (t) => {
    const { server, tab } = await start(t)
    await publish(server, 1, 25)
    await until(async () => (await heard(tab)).length === 25)
    await publish(server, 26, 50) // The server stops before it has sent them all.
    const again = await restart(t, server)
    await publish(again, 51, 100)
    await until(async () => (await heard(tab)).length >= 100)
    await isOpen(tab)
    await publish(again, 101, 101)
    await until(async () => (await heard(tab)).length >= 101)
    assert.deepEqual(await heard(tab), count(1, 101))
    const seen = (await tab.evaluate('states.filter((state) => state !== "connecting")')) as string[]
    assert.deepEqual(seen.filter((state, at) => state !== seen[at - 1]), ['open', 'waiting', 'open']) // It may try more than once.
  })

  it('reports a gap after a restart if it had no cursor', async (t) => {
    const { server, tab } = await start(t)
    const again = await restart(t, server)
    await publish(again, 1, 1)
    const last = await again.app.channel('news').last_id
    await until(async () => (await heard(tab)).length === 1)
    assert.deepEqual(await heard(tab), [`gap ${last}`])
    await publish(again, 2, 2)
    await until(async () => (await heard(tab)).length === 2)
    assert.equal((await heard(tab))[1], 2)
  })

  it('sends text and bytes if it is open, and hears what is no event', async (t) => {
    const { tab } = await start(t, '?url=/chat')
    const others = ['{"event":"message","id":"7","data":1}', '{"event":"gap"}', '{"event":', 'null', '']
    for (const text of others) assert.equal(await tab.evaluate(`news.send(${JSON.stringify(text)})`), true)
    assert.equal(await tab.evaluate('news.send(new Uint8Array([1, 2]))'), true)
    assert.equal(await tab.evaluate('news.send(new Uint8Array([3]).buffer)'), true)
    await until(async () => (await heard(tab)).length === 7)
    assert.deepEqual(await heard(tab), [...others.map((text) => `text ${text}`), 'bytes 1,2', 'bytes 3'])
    for (const wrong of ['{}', '7', 'null', 'undefined', 'new Blob()']) {
      const thrown = await tab.evaluate(`{ let thrown; try { news.send(${wrong}) } catch (error) { thrown = String(error) }; thrown }`)
      assert.match(String(thrown), /^TypeError: Cannot send: a message is a string, an ArrayBuffer or a view of one/)
    }
    assert.equal(await tab.evaluate('follow("/chat").send("early")'), false)
  })

  it('closes with 1000, and calls nothing but onState afterwards', async (t) => {
    const { server, tab } = await start(t, '?url=/chat')
    const codes: unknown[] = []
    server.app.channel('codes').subscribe(({ data }) => codes.push(data))
    assert.equal(await tab.evaluate('news.send("a"), news.close(), news.send("b")'), false)
    await until(() => codes.length === 1)
    assert.deepEqual(codes, [1000])
    assert.deepEqual(await tab.evaluate('[states.at(-1), news.state, heard.length]'), ['closed', 'closed', 0])
    assert.equal(await open(server), 0)
  })

  it('ends when the server refuses it, and tries again after other failures', async (t) => {
    const { tab } = await start(t)
    const stateOf = async (url: string): Promise<unknown> => {
      await tab.evaluate(`window.one?.close(), window.one = follow('${url}')`)
      let state: unknown // It is read once: one that waits tries again soon.
      await until(async () => ['refused', 'waiting'].includes(String((state = await tab.evaluate('one.state')))))
      return state
    }
    for (const code of [1008, 4000, 4499]) assert.equal(await stateOf(`/chat?code=${code}`), 'refused', String(code))
    for (const code of [1000, 1011, 3000, 4500]) assert.equal(await stateOf(`/chat?code=${code}`), 'waiting', String(code))
    for (const status of [401, 403, 404, 302]) assert.equal(await stateOf(`/answer/${status}`), 'refused', String(status))
    for (const status of [200, 426, 429, 500, 503]) assert.equal(await stateOf(`/answer/${status}`), 'waiting', String(status))
  })

  it('takes the address of the page, whatever the scheme', async (t) => {
    const { server, tab } = await start(t)
    const hosts = [server.url, server.url.replace('http', 'ws'), server.url.replace('http', 'https'), '']
    for (const [at, host] of hosts.entries()) {
      await tab.evaluate(`follow('${host}/chat?hello=${at}#part') && undefined`)
      await until(async () => (await heard(tab)).includes(`text ${at}`))
    }
  })

  it('reports that it is offline, and continues where it stopped', async (t) => {
    const { server, tab } = await start(t)
    await publish(server, 1, 1)
    await until(async () => (await heard(tab)).length === 1)
    await tab.network(false)
    await until(async () => (await tab.evaluate('news.state')) === 'offline')
    assert.equal(await tab.evaluate('news.send("a")'), false)
    await publish(server, 2, 3)
    await tab.network(true)
    await until(async () => (await heard(tab)).length === 3)
    assert.deepEqual(await heard(tab), [1, 2, 3])
  })

  it('closes when its page is left, and continues when it is shown again', async (t) => {
    const { server, tab } = await start(t)
    await publish(server, 1, 1)
    await until(async () => (await heard(tab)).length === 1)
    await tab.evaluate('{ window.addEventListener("pageshow", ({ persisted }) => (window.isKept = persisted)) }')
    await tab.open('about:blank')
    await until(async () => (await open(server)) === 0)
    await publish(server, 2, 2)
    await tab.back(1)
    assert.equal(await tab.evaluate('isKept'), true, 'the browser has kept the page')
    await until(async () => (await heard(tab)).length === 2)
    assert.deepEqual(await heard(tab), [1, 2])
    assert.deepEqual(await tab.evaluate('states'), ['open', 'hidden', 'connecting', 'open'])
    assert.equal(await open(server), 1)
  })
})
