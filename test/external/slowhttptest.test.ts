/**
 * The four attacks of Debian's `slowhttptest` at once, while somebody else uses the server.
 *
 * Surprise: `slowhttptest` never waits, so four of it take every core they are given. In life they are elsewhere; here
 * they yield to the server.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { until } from '../support/until.ts'

interface Status {
  readonly requests: { readonly active: number }
  readonly connections: { readonly active: number }
  readonly pool_http: { readonly busy: number; readonly queue: number }
  readonly memory: { readonly rss_mb: number }
}

const connections = 200
const seconds = 14
/** How long the other client pauses between two requests. */
const paceMs = 50
const attacks: readonly (readonly [name: string, path: string, options: readonly string[]])[] = [
  ['slow headers', '/ok', ['-H', '-i', '1', '-x', '20']],
  ['slow body', '/read', ['-B', '-i', '1', '-s', '8192', '-x', '10']],
  ['ranges', '/large.bin', ['-R', '-a', '5', '-b', '3000']],
  ['slow read', '/large.bin', ['-X', '-w', '256', '-y', '512', '-n', '1', '-z', '32', '-k', '3']],
]

it(`stays available under ${attacks.length} times ${connections} slow clients, and is as before afterwards`, async (t) => {
  const { url, lines } = await serve(
    t,
    { '/ok': "() => 'ok'", '/read': '(ctx) => ctx.readBytes().then((bytes) => String(bytes.length))' },
    { 'app.env': 'dev', 'paths.public': 'public', 'server.header_timeout_s': 3, 'server.request_timeout_s': 6, 'pool_http.workers': 500 },
    { 'public/large.bin': 'x'.repeat(4_000_000) },
  )
  const status = async (): Promise<Status> => (await request(`${url}/svc-status`)).json() as Status
  const before = await status()
  let running = attacks.length
  let mostConnections = 0
  const outputs = attacks.map(async ([name, path, options]) => {
    const common = ['-c', String(connections), '-r', '100', '-l', String(seconds), '-u', url + path]
    const child = spawn('nice', ['-n', '10', 'slowhttptest', ...options, ...common], { stdio: ['ignore', 'pipe', 'pipe'] })
    t.after(() => child.kill('SIGKILL'))
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    await once(child, 'close')
    running -= 1
    return [name, output] as const
  })
  const times: number[] = []
  while (running > 0) {
    const from = performance.now()
    assert.equal((await request(`${url}/ok`)).text, 'ok')
    times.push(performance.now() - from)
    mostConnections = Math.max(mostConnections, (await status()).connections.active)
    await delay(paceMs)
  }
  times.sort((a, b) => a - b)
  t.diagnostic(`${times.length} requests meanwhile, p99 ${times[Math.floor(times.length * 0.99)]?.toFixed(1)} ms, the slowest in ${times.at(-1)?.toFixed(1)} ms; up to ${mostConnections} connections`)
  assert.ok(mostConnections > connections, `${mostConnections} connections`)
  for (const [name, output] of await Promise.all(outputs)) {
    const plain = output.replace(/\x1b\[[0-9;]*[A-Za-z]/g, '')
    assert.match(plain, /service available:\s+YES/, `${name}: ${plain.slice(-1500)}`)
    assert.doesNotMatch(plain, /service available:\s+NO/, `${name}: ${plain.slice(-1500)}`)
  }
  assert.ok(lines().some((line) => line.includes('[socket] 408 for ')), 'slow clients are told 408')
  await until(async () => {
    const { requests, connections: open, pool_http: pool } = await status()
    return requests.active === 1 && open.active === 1 && pool.busy === 0 && pool.queue === 0
  })
  const { memory } = await status()
  assert.ok(memory.rss_mb < before.memory.rss_mb + 300, `${before.memory.rss_mb} MiB became ${memory.rss_mb}`)
  assert.deepEqual(lines().filter((line) => /\[(ERROR|FATAL)\]/.test(line)), [])
})
