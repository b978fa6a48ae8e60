/** The server that the fuzzer talks to: a process of the launcher in a folder of its own, and what it writes there. */
import assert from 'node:assert/strict'
import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { makeAdminCookie } from '../../lib/access/cookie.ts'
import { writeFiles } from '../support/application.ts'
import { launch, type Launched } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { hmacToken, secret as jwtSecret } from '../jwt/tokens.ts'
import type { WireSecrets } from './wire-requests.ts'

/** What of `/svc-status` must be back at nothing. */
interface Status {
  readonly requests: { readonly active: number }
  readonly connections: { readonly active: number }
  readonly pool_http: { readonly busy: number; readonly queue: number }
  readonly pool_rest: { readonly sse: number; readonly longpoll: number; readonly queue: number }
  readonly pool_ws: { readonly active: number }
  readonly log: { readonly lost: number }
  readonly access_log: { readonly written: number; readonly lost: number }
  readonly memory: { readonly rss_mb: number; readonly heap_used_mb: number }
}

const adminSecret = 'the secret of the fuzzer'
const accessLine = /^(127\.\d+\.\d+\.\d+) - - \[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "[\x21\x23-\x7e]+ [\x21\x23-\x7e]+ HTTP\/(?:1\.[01]" ([1-5]\d\d)|(?:0\.9|2\.0)" (400))$/
const logLine = /^(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\] \[(DEBUG|INFO |WARN |ERROR|FATAL)\] \[[a-z_]+\] |    )[^\x00-\x1f\x7f-\x9f]*$/
/** The most memory in MiB that the process may take, whatever is sent. */
const mostMemory = 600

const routes: readonly (readonly [url: string, action: string, middleware?: string])[] = [
  ['/ok', 'ok'], ['/read', 'read'], ['/json', 'json'], ['/form', 'form'], ['/echo/:a/*rest', 'echo'], ['/cookie', 'cookie'],
  ['/session', 'session', 'SVC_MwSession'], ['/csrf', 'ok', 'SVC_MwSession,SVC_MwCsrfCheck'], ['/jwt', 'ok', 'SVC_MwJwt'],
  ['/poll', 'poll'], ['/sse', 'sse'], ['/ws', 'websocket'],
]
const actions = `
export const ok = () => 'ok'
export const read = async (ctx) => String((await ctx.readBytes()).length)
export const json = async (ctx) => ({ value: await ctx.readJson() })
export const form = async (ctx) => {
  const form = await ctx.readForm()
  return { fields: [...form.entries()], files: form.files.map(({ name, filename, type, size }) => ({ name, filename, type, size })), id: await ctx.resourceId() }
}
export const echo = ({ params, query, headers, cookies, ip, host, id, path, secure }) => ({ params, query: [...query], headers, cookies, ip, host, id, path, secure })
export const cookie = (ctx) => (ctx.setCookie('c', (ctx.query.get('v') ?? '').slice(0, 300)), 'set')
export const session = (ctx) => {
  const key = (ctx.query.get('k') ?? 'k').slice(0, 50)
  ctx.session.set(key, { [key]: ctx.headers['x-any'] ?? null })
  ctx.flash('f').set('message', key)
  return { value: ctx.session.get(key), csrf: ctx.csrfInput() }
}
export const poll = (ctx) => ctx.longPoll(ctx.channel('c'), { timeout_s: 20 })
export const sse = (ctx) => ctx.sse(ctx.channel('c'))
`

export class WireServer {
  readonly port: number
  readonly secrets: WireSecrets
  readonly #launched: Launched
  readonly #folder: string
  readonly #read = new Map<string, { offset: number; rest: string }>()
  #accessLines = 0

  private constructor(port: number, folder: string, launched: Launched) {
    this.port = port
    this.#folder = folder
    this.#launched = launched
    const rules = { secret: adminSecret, hardened: false, lifetimeMinutes: 0, nowMs: 1_700_000_000_000 }
    this.secrets = {
      adminCookie: `svc_admin=${makeAdminCookie(rules)}`,
      sessionCookie: 'x'.repeat(43),
      csrfToken: 'eA.00',
      jwt: hmacToken({ alg: 'HS256' }, { sub: 'x' }),
    }
  }

  /** Starts one; it is killed at the end. */
  static async start(t: { after(clean: () => unknown): void }): Promise<WireServer> {
    const folder = temporaryFolder()
    writeFiles(folder, {
      'svc.json': {
        app_key: 'the key of the fuzzer',
        app: { env: 'prod' },
        admin: { user: 'root', password: '0'.repeat(32), secret: adminSecret },
        session: { lifetime: 0 },
        server: { port: 0, body_limit_kb: 64 },
        log: { console: true, level: 'info' },
        paths: { public: 'public' },
      },
      'routes/r.json': [
        ...routes.map(([url, action, middleware = '']) => {
          return { name: url, url, middleware, action: action === 'websocket' ? 'ws.mjs' : `actions.mjs@${action}` }
        }),
        { name: 'view', url: '/view', action: 'v.html' },
      ],
      'routes/middleware/config.json': { setup: { session: { max: 1000 }, jwt: { key: jwtSecret } } },
      'actions.mjs': actions,
      'ws.mjs': 'export const websocket = { message: (ws, data) => void ws.send(data) }\n',
      'v.html': '<p>{{ query.get("a") }}</p>@csrf\n{{ UResourceToHtml(query.get("a") ?? "x") }}\n'.replace('{{ UR', '{!! UR').replace('"x") }}', '"x") !!}'),
      'public/small.txt': 'small',
      'public/large.txt': 'large '.repeat(20_000),
      'public/folder/index.html': '<p>folder',
    })
    const launched = launch(t as Parameters<typeof launch>[0], ['start', '--config', join(folder, 'svc.json')], { cwd: folder })
    const url = await launched.listening()
    return new WireServer(Number(new URL(url).port), folder, launched)
  }

  /** Whether the process runs. */
  get isAlive(): boolean {
    return this.#launched.child.exitCode === null && this.#launched.child.signalCode === null
  }

  /** What it printed last. */
  get lastWords(): string {
    return (this.#launched.stdout() + this.#launched.stderr()).slice(-3000)
  }

  /** The statuses that were logged since the last call, by address; throws for a line that is none. */
  accessLines(): Map<string, number[]> {
    const statuses = new Map<string, number[]>()
    for (const line of this.#newLines('access.log')) {
      this.#accessLines += 1
      const [, ip, status, refusal] = accessLine.exec(line) ?? []
      assert.ok(ip !== undefined, `No access line: ${JSON.stringify(line)}`)
      statuses.set(ip, [...(statuses.get(ip) ?? []), Number(status ?? refusal)])
    }
    return statuses
  }

  /** Waits until nothing is served, and shows that nothing is left: every slot free, every line written, the log in order. */
  async settle(): Promise<void> {
    let status = await this.#status()
    const idle = { http: 0, queue: 0, sse: 0, poll: 0, rest: 0, ws: 0, requests: 1, connections: 1, lost: 0 }
    const state = (): typeof idle => {
      const { pool_http: http, pool_rest: rest, pool_ws: ws, requests, connections, log, access_log: access } = status
      return {
        http: http.busy, queue: http.queue, sse: rest.sse, poll: rest.longpoll, rest: rest.queue, ws: ws.active,
        requests: requests.active, connections: connections.active, lost: log.lost + access.lost,
      }
    }
    const isIdle = async (): Promise<boolean> => {
      status = await this.#status()
      return JSON.stringify(state()) === JSON.stringify(idle)
    }
    await until(isIdle).catch(() => assert.deepEqual(state(), idle))
    assert.ok(status.memory.rss_mb < mostMemory, `It takes ${status.memory.rss_mb} MiB`)
    for (const line of this.#newLines('svc.log')) {
      assert.match(line, logLine)
      assert.doesNotMatch(line, /^\S+ \S+ \[(ERROR|FATAL)\]/)
    }
  }

  /** That as many lines were written as the server says; to be called when `accessLines` has been and nothing is served. */
  async checkCount(): Promise<void> {
    const { access_log: access } = await this.#status()
    const expected = access.written + 1 // The line of this question itself is written behind its answer.
    await until(() => (this.accessLines(), this.#accessLines >= expected))
    assert.equal(this.#accessLines, expected)
  }

  /** Ends it with SIGTERM. */
  async stop(): Promise<void> {
    this.#launched.child.kill('SIGTERM')
    assert.equal(await this.#launched.ended, 0)
  }

  async #status(): Promise<Status> {
    const answer = await request(`http://127.0.0.1:${this.port}/svc-status`, { headers: { cookie: this.secrets.adminCookie } })
    return answer.json() as Status
  }

  #newLines(file: string): string[] {
    const state = this.#read.get(file) ?? { offset: 0, rest: '' }
    this.#read.set(file, state)
    const fd = openSync(join(this.#folder, '.logs', file), 'r')
    try {
      const buffer = Buffer.alloc(1 << 20)
      for (let count; (count = readSync(fd, buffer, 0, buffer.length, state.offset)) > 0; ) {
        state.offset += count
        state.rest += buffer.toString('latin1', 0, count)
      }
    } finally {
      closeSync(fd)
    }
    const lines = state.rest.split('\n')
    state.rest = lines.pop() ?? ''
    return lines
  }
}
