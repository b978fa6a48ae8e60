// A server with misbehaving clients, and checks that nothing of them is left.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import type { TestContext } from 'node:test'
import type { TestApplication } from '../support/application.ts'
import { Connection, requestText } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { Seeded } from '../support/seeded.ts'
import { serve } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const actions = {
  '/ok': "() => 'ok'",
  '/read': '(ctx) => ctx.readBytes().then((bytes) => String(bytes.length))',
  '/json': '(ctx) => ctx.readJson()',
  '/form': "(ctx) => ctx.readForm().then((form) => form.files.map((file) => file.size).join())",
  '/wait': "(ctx) => new Promise((resolve) => { ctx.log('waits'); ctx.signal.addEventListener('abort', () => resolve('gone')) })",
  '/big': "() => 'x'.repeat(2e7)",
  '/echo/:a/*rest': '({ params, query, headers, cookies, ip, host, id }) => ({ params, query: [...query], headers, cookies, ip, host, id })',
}
const config = { 'server.body_limit_kb': 1024, 'paths.public': 'public', 'pool_http.workers': 8, 'pool_http.queue_size': 8 }
const files = { 'public/large.bin': 'y'.repeat(5_000_000), 'public/small.txt': 'small' }

/**
 * The open handles of the process: the sockets that Node knows, and descriptors of files in these folders if the system
 * lists them. Files opened by the test loader do not count.
 */
function heldIn(folders: readonly string[]): { sockets: number; files: string[] } {
  const sockets = process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
  if (!existsSync('/proc/self/fd')) return { sockets, files: [] }
  const names = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return '' // The descriptor that read the folder.
    }
  })
  return { sockets, files: names.filter((name) => folders.some((folder) => name.startsWith(folder))).toSorted() }
}

/** Starts the server with its own temporary folder; `clean` checks that nothing of the requests is left. */
export async function hostileServer(t: TestContext): Promise<TestApplication & { clean: () => Promise<void> }> {
  const uploads = temporaryFolder()
  const application = await serve(t, actions, { ...config, 'paths.temp': uploads }, files)
  assert.equal((await request(`${application.url}/ok`)).text, 'ok')
  const held = (): ReturnType<typeof heldIn> => heldIn([application.folder, uploads])
  await until(() => held().sockets === 0)
  const start = held()
  assert.ok(start.files.length > 0 || !existsSync('/proc/self/fd'), 'the logs are open')
  const clean = async (): Promise<void> => {
    assert.equal((await request(`${application.url}/ok`)).text, 'ok')
    await until(() => held().sockets === start.sockets)
    await until(() => held().files.length === start.files.length && readdirSync(uploads).length === 0)
    assert.deepEqual(held(), start)
    assert.deepEqual(application.lines().filter((line) => /\[(ERROR|FATAL)\]/.test(line)), [])
    const from = performance.now()
    await application.app.stop()
    assert.ok(performance.now() - from < 5000, 'no request is left that the stop would wait for')
  }
  return { ...application, clean }
}

const multipart = 'multipart/form-data; boundary=B'
const part = '--B\r\nContent-Disposition: form-data; name="f"; filename="f.bin"\r\n\r\n'
const stages: [string, string, RegExp | undefined][] = [
  ['before anything', '', undefined],
  ['in the request line', 'GET /o', undefined],
  ['in the header section', 'GET /ok HTTP/1.1\r\nHost: h\r\nCook', undefined],
  ['before the body', requestText('POST /read', ['Content-Length: 100']), undefined],
  ['in the body', requestText('POST /read', ['Content-Length: 100'], 'abc'), undefined],
  ['in a chunk', requestText('POST /json', ['Transfer-Encoding: chunked'], 'ff\r\n{"a'), undefined],
  ['before 100 Continue is used', requestText('POST /read', ['Content-Length: 100', 'Expect: 100-continue']), /100 Continue/],
  [
    'in an upload',
    requestText('POST /form', [`Content-Type: ${multipart}`, 'Content-Length: 900000'], part + 'z'.repeat(300_000)),
    undefined,
  ],
  ['while the action runs', requestText('GET /wait'), undefined],
  ['while more wait behind it', requestText('GET /wait').repeat(20), undefined],
  ['while a large body is sent', requestText('GET /big'), /200 OK/],
  ['while a large body is packed', requestText('GET /big', ['Accept-Encoding: gzip']), undefined],
  ['while a large file is sent', requestText('GET /large.bin'), /200 OK/],
  ['while a large file waits behind another answer', requestText('GET /wait') + requestText('GET /large.bin'), undefined],
  ['after a refusal', 'nonsense\r\n\r\n', /400 Bad/],
]

/**
 * Makes clients leave at every stage.
 * @param waysPerStage by how many of the six ways each stage is left; all are taken in any case
 */
export async function checkLeavers(t: TestContext, waysPerStage: number): Promise<void> {
  const server = await hostileServer(t)
  const ways = (['end', 'destroy', 'reset'] as const).flatMap((how) => [false, true].map((late) => ({ how, late })))
  for (const [at, [stage, bytes, seen]] of stages.entries()) {
    for (let way = 0; way < waysPerStage; way += 1) {
      const { how, late } = ways[(at + way) % ways.length] as Way
      const client = new Connection(t, server.port)
      await once(client.socket, 'connect')
      if (bytes !== '') await client.send(bytes)
      // `late` gives the server the time of another request.
      if (late) await request(`${server.url}/small.txt`)
      if (late && seen !== undefined) await until(() => seen.test(client.received))
      client.socket.pause()
      if (how === 'end') client.socket.resume().end()
      else if (how === 'destroy') client.socket.destroy()
      else await client.reset()
      await client.closed()
      assert.equal((await request(`${server.url}/small.txt`)).text, 'small', `after a client left ${stage} by ${how}`)
    }
  }
  await server.clean()
}

interface Way {
  readonly how: 'end' | 'destroy' | 'reset'
  readonly late: boolean
}

const good = [
  requestText('GET /ok', ['Cookie: a=b; c=d', 'Accept: application/json', 'X-Request-Id: 12345678']),
  requestText('GET /echo/%C3%A9/b/c?d=e&f=%20', ['X-Forwarded-For: 1.2.3.4', 'Range: bytes=0-1', 'If-None-Match: "a"']),
  requestText('POST /json', ['Content-Type: application/json', 'Content-Length: 9'], '{"a":[1]}'),
  requestText('POST /read', ['Transfer-Encoding: chunked'], '3\r\nabc\r\n4;e=f\r\ndefg\r\n0\r\nT: u\r\n\r\n'),
  requestText('POST /form', ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 7'], 'a=b&c=d'),
  requestText(
    'POST /form',
    ['Content-Type: multipart/form-data; boundary=B', 'Content-Length: 81'],
    '--B\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\nfile content\r\n--B--',
  ),
  requestText('HEAD /large.bin', ['Accept-Encoding: gzip, br;q=0.5']),
  requestText('OPTIONS *'),
  requestText('PUT http://h:80/ok', ['Expect: 100-continue', 'Content-Length: 1'], 'x'),
  requestText('GET /ok', ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: x']),
  requestText('CONNECT h:80'),
]

/** One or two valid requests with some bytes changed, duplicated, removed or inserted, or truncated. */
function broken(seeded: Seeded): Buffer {
  let bytes = Buffer.from(seeded.pick(good) + (seeded.next() < 0.3 ? seeded.pick(good) : ''), 'latin1')
  for (let change = seeded.integer(4); change >= 0; change--) {
    const at = seeded.integer(bytes.length + 1)
    const [head, tail] = [bytes.subarray(0, at), bytes.subarray(at)]
    const odd = Buffer.from(seeded.pick(['\r\n', '\0', '\n', ' ', ':', '%', '\xff', ',', ';', '0', '\r\n\r\n', '%00', '/../', '"']), 'latin1')
    bytes = seeded.pick([
      () => Buffer.concat([head, seeded.bytes(1 + seeded.integer(3)), tail.subarray(1)]),
      () => Buffer.concat([head, odd, tail]),
      () => Buffer.concat([head, tail.subarray(1 + seeded.integer(8))]),
      () => Buffer.concat([head, head.subarray(-20), tail]),
      () => head,
    ])()
  }
  return bytes
}

/** Sends broken requests, sixteen at a time. */
export async function checkBrokenRequests(t: TestContext, rounds: number): Promise<void> {
  const server = await hostileServer(t)
  const seeded = new Seeded(20_260)
  for (let round = 0; round < rounds; round++) {
    const clients = Array.from({ length: 16 }, () => {
      const client = new Connection(t, server.port)
      const bytes = broken(seeded)
      const cut = seeded.integer(bytes.length + 1)
      client.socket.write(bytes.subarray(0, cut))
      client.socket.end(bytes.subarray(cut))
      return client
    })
    for (const client of clients) {
      const text = await client.closed()
      assert.match(text, /^(HTTP\/1\.1 [1-5]\d\d |$)/)
    }
  }
  await server.clean()
}
