import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { startApplication, type TestApplication } from '../support/application.ts'
import { Connection, cutAtEnd, requestText } from '../support/connection.ts'
import { runCurlLines } from '../support/curl.ts'
import { withoutRequestId } from '../support/log-lines.ts'
import { codeOf, readPage, shownFiles, tableBelow } from '../support/markdown.ts'
import { request } from '../support/request.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { until } from '../support/until.ts'
import { openWebSocket, WebSocketClient } from '../support/websocket.ts'

const page = readPage('docs/streaming.md')
const files = { 'package.json': { type: 'module' }, ...shownFiles(page) }

describe('docs/streaming.md', () => {
  it('has curl lines that print what the page shows', async (t) => {
    const { url, folder, app } = await startApplication(t, files)
    assert.deepEqual(app.warnings(), [])
    await runCurlLines(page, { 8080: url }, folder)
  })

  it('has examples of leases, durable channels and waits that work', async (t) => {
    const paid = page.blocks.find(({ text }) => text.includes('durable: true'))?.text ?? ''
    const [, held = ''] = /`return (ctx\.hold\(.*\))` replies/.exec(page.prose) ?? []
    const { url } = await startApplication(t, {
      ...files,
      'routes/more.json': ['paid', 'held'].map((name) => ({ name, url: `/${name}`, action: `more.mjs@${name}` })),
      'more.mjs': `${paid}\nconst other = 'data:,done'\nexport const held = (ctx) => ${held}`,
    })
    await request(`${url}/jobs`, { headers: form, body: 'file=c.pdf' })
    const { lease } = (await request(`${url}/jobs/leased`)).json() as { lease: string }
    const done = { headers: form, body: `lease=${encodeURIComponent(lease)}` }
    assert.equal((await request(`${url}/jobs/done`, done)).text, '{"done":true}')
    assert.equal((await request(`${url}/jobs/done`, done)).text, '{"done":false}')
    assert.equal((await request(`${url}/held`)).text, 'done')
    assert.equal((await request(`${url}/paid`, { body: '{"order":7}' })).status, hasSqlite ? 202 : 500)
  })

  it('shows the start of a stream', async (t) => {
    cutAtEnd(t)
    const { port, url } = await startApplication(t, files)
    await request(`${url}/messages`, { method: 'POST', body: 'text=Hello', headers: form })
    const connection = new Connection(t, port)
    connection.socket.write(requestText('GET /messages/live?since=0', ['Accept: text/event-stream']))
    await until(() => connection.received.includes('Hello'))
    const shown = page.blocks.find(({ text }) => text.startsWith('retry: '))?.text ?? ''
    const sent = connection.received.slice(connection.received.indexOf('\r\n\r\n') + 4)
    const lines = sent.split('\r\n').filter((line) => !/^[0-9a-f]+$/.test(line)).join('') // without the chunks' lengths
    assert.match(lines, new RegExp(`^${shown.replace(/[{}[\]]/g, '\\$&').replaceAll('...', '\\d+')}$`))
  })

  it('has a WebSocket that publishes texts and closes on other messages', async (t) => {
    cutAtEnd(t)
    const { port } = await startApplication(t, files)
    const client = await openWebSocket(t, port, '/messages/socket')
    client.say('Hello')
    assert.match(await client.hear(), /^\{"event":"message","id":\d+,"data":\{"text":"Hello"\}\}$/)
    client.say('x'.repeat(501))
    assert.deepEqual(await client.closing(), [1008, 'A text of at most 500 characters'])
  })

  it('lists the limits by their keys', async (t) => {
    const { app } = await startApplication(t, {})
    const keys = tableBelow(page, '## Limits').map(([key = '']) => key.slice(1, -1))
    assert.deepEqual(keys.filter((key) => !(key in app.config)), [])
    const pools = Object.keys(app.config).filter((key) => /^pool_(rest|ws)\./.test(key))
    assert.deepEqual(pools.filter((key) => !keys.includes(key)), [])
  })

  it('lists the members of a WebSocket', async (t) => {
    cutAtEnd(t)
    const { port, lines } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs' }],
      'a.mjs': `export const websocket = {
        open(ws, { log }) { log('members ' + Object.getOwnPropertyNames(Object.getPrototypeOf(ws)).join()) },
      }`,
    })
    await openWebSocket(t, port, '/')
    await until(() => lines().some((line) => line.includes('members ')))
    const members = lines().join('\n').match(/members (.*)/)?.[1]?.split(',') ?? []
    const internal = ['constructor', 'start', 'beat', 'drained']
    const cells = tableBelow(page, '## WebSockets').map(([cell = '']) => /^`(\w+)/.exec(cell)?.[1] ?? cell)
    const documented = cells.slice(cells.indexOf('member of `ws`') + 2) // after the handlers, the head and its line
    assert.deepEqual(documented.sort(), members.filter((name) => !internal.includes(name)).sort())
  })
})

describe('docs/troubleshooting.md on events and WebSockets', () => {
  it('explains every log line, and no other', async (t) => {
    cutAtEnd(t)
    const rows = tableBelow(readPage('docs/troubleshooting.md'), '## Lines of events and WebSockets')
    const patterns = rows.flatMap(([cell = '']) => {
      const [, level = 'ERROR', module = 'error'] = /^(WARN) (\w+) `/.exec(cell) ?? []
      return codeOf(cell).map((text) => patternOf(level, module, text))
    })
    const lines = [...(await linesOfWaits(t)), ...(await linesOfWrongUse(t))]
    assert.deepEqual(lines.filter((line) => !patterns.some((pattern) => pattern.test(line))), [])
    assert.deepEqual(patterns.filter((pattern) => !lines.some((line) => pattern.test(line))), [])
  })
})

const form = { 'content-type': 'application/x-www-form-urlencoded' }

function patternOf(level: string, module: string, text: string): RegExp {
  const parts = text.split('...').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(`^${level} ${module} ${parts.join('.*')}$`)
}

/** Level, module and message of WARN and ERROR lines, except those of the admin panel. */
function problemsOf({ lines }: TestApplication): string[] {
  const found = lines().map((line) => /^\[[^\]]+\] \[(WARN|ERROR) *\] \[(?!server)(\w+)\] (.*)$/.exec(line))
  // On a slow machine module metrics may report a delayed event loop.
  return found.flatMap((match) => (match === null || match[2] === 'metrics' ? [] : [withoutRequestId(match.slice(1).join(' '))]))
}

/** Reaches limits, lets handlers and listeners fail, and sends a client too much. */
async function linesOfWaits(t: TestContext): Promise<string[]> {
  const routes = ['poll', 'stream', 'publish', 'late'].map((name) => ({ name, url: `/${name}`, action: `a.mjs@${name}` }))
  const sockets = ['full', 'broken'].map((name) => ({ name, url: `/${name}`, action: `${name}.mjs` }))
  const given = {
    'routes/a.json': [...routes, ...sockets],
    'a.mjs': `import { setTimeout as delay } from 'node:timers/promises'
      export const poll = ({ longPoll, channel }) => longPoll(channel('a'))
      export const stream = ({ sse, channel }) => sse(channel('a'))
      export const publish = ({ channel }) => String(channel('a').publish(1))
      export const late = ({ hold }) => hold(() => delay(300).then(() => { throw new Error('late') }), { timeout_s: 0.001 })`,
    'full.mjs': 'export const websocket = { open(ws) { while (ws.send(Buffer.alloc(1 << 20))); } }',
    'broken.mjs': "export const websocket = { open() { throw new Error('no') } }",
    'routes/middleware/config.json': { load: ['own.mjs'] },
    'routes/middleware/own.mjs': `export function setup({ channel }) {
      channel('a').subscribe(() => { throw new Error('no') })
    }`,
  }
  const refusing: TestApplication[] = []
  for (const path of ['/poll', '/stream', '/full']) {
    const none = { pool_rest: { workers_longpoll: 0, workers_sse: 0 }, pool_ws: { workers: 0 } }
    const one = await startApplication(t, given, none) // Each server writes at most one such line a second.
    const refused = path === '/full' ? new WebSocketClient(t, one.port).handshake(path) : request(one.url + path)
    assert.equal((await refused).status, 503)
    refusing.push(one)
  }

  const application = await startApplication(t, given)
  const { url, port } = application
  await request(`${url}/late`)
  await request(`${url}/publish`)
  for (const path of ['/broken', '/full']) await openWebSocket(t, port, path)
  for (const text of ['after its wait', 'a listener failed', 'handler failed', 'cut, since']) {
    await until(() => problemsOf(application).some((line) => line.includes(text)))
  }
  return [...refusing.flatMap(problemsOf), ...problemsOf(application)]
}

/** Passes invalid arguments to events. */
async function linesOfWrongUse(t: TestContext): Promise<string[]> {
  const wrong = {
    source: "({ longPoll }) => longPoll('a')",
    option: "({ longPoll, channel }) => longPoll(channel('a'), { timeout: 1 })",
    time: "({ longPoll, channel }) => longPoll(channel('a'), { timeout_s: -1 })",
    form: "({ longPoll, channel }) => longPoll(channel('a'), { form: 'typed' })",
    stream: "({ sse, queue }) => sse(queue('a'))",
    retry: "({ sse, channel }) => sse(channel('a'), { retry_ms: 0.5 })",
    channel: '({ channel }) => channel(7)',
    queue: "({ queue }) => queue('a', { events: 0 })",
    other: "({ channel }) => { channel('a'); channel('a', { events: 7 }) }",
    publish: "({ channel }) => channel('a').publish(undefined)",
    push: "({ queue }) => queue('a').push(() => {})",
    subscribe: "({ channel }) => channel('a').subscribe(7)",
    hold: '({ hold }) => hold(7)',
    holdTime: "({ hold }) => hold(() => 1, { timeout_s: 'a' })",
    cached: "(ctx) => { ctx.setHeader('Cache-Control', 'max-age=9'); return ctx.longPoll(ctx.channel('a'), { timeout_s: 0 }) }",
    keep: "(ctx) => (globalThis.kept ??= ctx.longPoll(ctx.channel('a'), { timeout_s: 0 }))",
  }
  const names = Object.keys(wrong)
  const application = await startApplication(t, {
    'routes/a.json': names.map((name) => ({ name, url: `/${name}`, action: `a.mjs@${name}` })),
    'a.mjs': Object.entries(wrong).map(([name, text]) => `export const ${name} = ${text}\n`).join(''),
  })
  for (const name of names.filter((one) => !['cached', 'keep'].includes(one))) {
    assert.equal((await request(`${application.url}/${name}`)).status, 500, name)
  }
  assert.equal((await request(`${application.url}/cached`)).headers['cache-control'], 'no-store')
  assert.equal((await request(`${application.url}/keep`)).status, 200)
  assert.equal((await request(`${application.url}/keep`)).status, 500)
  Reflect.deleteProperty(globalThis, 'kept')
  return problemsOf(application)
}
