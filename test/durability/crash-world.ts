/**
 * An application that is killed with SIGKILL again and again while it saves, and what must hold of it each time: every
 * file is whole, the next start works, and nothing is gone that a client was told was saved.
 *
 * Surprise: what was asked for and not answered may have happened or not. So of each thing all states are kept in which
 * it may be; an answer leaves one.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { writeFiles } from '../support/application.ts'
import { launch, root } from '../support/launch.ts'
import { request, type Answer, type Question } from '../support/request.ts'
import { Seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { numberedLines, readNumbers } from './numbered-lines.ts'

/** What goes on when it is killed: everything that a running server saves, the first setup, the word `passwd`. */
export const killKinds = ['serve', 'setup', 'passwd'] as const
export type KillKind = (typeof killKinds)[number]

/** Who ends what a world has started. */
interface Owner {
  after(work: () => unknown): void
}

interface Visitor {
  cookie: string
  /** The values that the session may have. */
  allowed: Set<string>
}

interface Credentials {
  readonly user: string
  readonly password: string
}

const visitors = 3
const linesAtOnce = 2000
/** After so many the application lets the event loop turn. */
const linesInTurn = 100
const action = `
export const count = ({ session }) => {
  const count = (session.get('count') ?? 0) + 1
  session.set('count', count)
  return { value: String(count) }
}
export const value = ({ session }) => ({ value: String(session.get('count') ?? 0) })
export const put = ({ flash, query }) => {
  flash('note').set('text', query.get('text'))
  return { value: query.get('text') }
}
export const take = ({ flash }) => ({ value: flash('note').get('text', '') })
export const hello = () => ({ ok: true })
`
const none: Credentials = { user: '', password: '' }
const savedRoute = /^r\d+$/

export class CrashWorld {
  readonly folder: string
  readonly #owner: Owner
  readonly #seeded: Seeded
  readonly #counters: Visitor[] = []
  readonly #flashes: Visitor[] = []
  /** Whether each route is there; undefined: perhaps. */
  readonly #routes = new Map<string, boolean | undefined>()
  #credentials = none
  /** Those of a setup that was not answered. */
  #offered = none
  /** The first numbers of the lines that were acknowledged since the last kill. */
  #logged: number[] = []
  #number = 0
  #names = 0
  #passwdMs = 0
  /** What was seen, to show that the kills hit something. */
  readonly seen = { kills: 0, answered: 0, unanswered: 0, temporaryFiles: 0, rotations: 0 }

  constructor(owner: Owner, folder: string, seed: number) {
    this.#owner = owner
    this.folder = folder
    this.#seeded = new Seeded(seed)
    const names = ['count', 'value', 'put', 'take']
    const records = names.map((name) => {
      return { name, url: `/${name}`, action: `saves.mjs@${name}`, middleware: 'SVC_MwSession' }
    })
    writeFiles(folder, {
      ...numberedLines,
      'svc.json': { app_key: 'test', server: { port: 0 }, log: { max_size_mb: 1 } },
      'routes/saves.json': records,
      'routes/middleware/config.json': { setup: { session: { store: 'file', path: 'sessions', ttl_s: 86_400 } } },
      'saves.mjs': action,
    })
    for (let count = 0; count < visitors; count += 1) {
      this.#counters.push({ cookie: '', allowed: new Set(['0']) })
      this.#flashes.push({ cookie: '', allowed: new Set(['']) })
    }
  }

  /** Begins what the kind says, kills it at a random moment, and looks at what is left. */
  async kill(kind: KillKind): Promise<void> {
    if (kind === 'passwd') await this.#killPasswd()
    else await this.#killServer(kind)
    this.seen.kills += 1
    this.#checkFiles()
  }

  /** Starts the server once more, and looks whether all is there. */
  async close(): Promise<void> {
    const { url, child, ended } = await this.#start()
    await this.#checkAnswers(url)
    child.kill('SIGTERM')
    assert.equal(await ended, 0)
  }

  async #killServer(kind: 'serve' | 'setup'): Promise<void> {
    if (kind === 'setup') this.#forgetCredentials()
    const { url, child, ended } = await this.#start()
    await this.#checkAnswers(url)
    const cookie = kind === 'serve' ? await this.#signIn(url) : ''
    const work = [
      ...this.#counters.map((visitor) => this.#repeat(() => this.#count(url, visitor))),
      ...this.#flashes.map((visitor) => this.#repeat(() => this.#flash(url, visitor))),
      this.#repeat(() => this.#log(url)),
      kind === 'serve' ? this.#repeat(() => this.#changeRoutes(url, cookie)) : this.#repeat(() => this.#setUp(url), 1),
    ]
    // By answers rather than by time, so that a slow machine has as much under way.
    const answered = this.seen.answered + (kind === 'setup' ? 0 : this.#seeded.integer(60))
    await until(() => this.seen.answered >= answered)
    await delay(this.#seeded.next() * 25)
    child.kill('SIGKILL')
    await ended
    await Promise.all(work)
  }

  async #killPasswd(): Promise<void> {
    if (this.#passwdMs === 0) {
      const startedAt = performance.now()
      assert.equal(await this.#passwd(Infinity), 0)
      this.#passwdMs = performance.now() - startedAt
    }
    // It saves at the end of its short life.
    await this.#passwd(this.#passwdMs * (0.7 + 0.3 * this.#seeded.next()))
  }

  /** Runs the word `passwd`, and kills it after so many milliseconds. Returns its exit status; null: it was killed. */
  async #passwd(killAfterMs: number): Promise<number | null> {
    const wanted = this.#newCredentials()
    const before = this.#credentials
    const child = spawn(process.execPath, [...nodeOptions(), `${root}bin/svc.js`, 'passwd'], { cwd: this.folder })
    this.#owner.after(() => child.kill('SIGKILL'))
    child.stdin.on('error', () => {}).end(`${wanted.user}\n${wanted.password}\n${wanted.password}\n`)
    const ended = once(child, 'exit') as Promise<[number | null]>
    const timer = killAfterMs === Infinity ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs)
    const [status] = await ended
    clearTimeout(timer)
    this.#tell(status === 0)
    this.#credentials = this.#savedOf(status === 0 ? [wanted] : [wanted, before])
    return status
  }

  async #start(): Promise<{ url: string; child: ReturnType<typeof launch>['child']; ended: Promise<unknown> }> {
    const { child, ended, listening } = launch(this.#owner, ['start'], { cwd: this.folder })
    return { child, ended, url: await listening() }
  }

  /** Does one thing after the other until the server is gone. */
  async #repeat(work: () => Promise<void>, times = Infinity): Promise<void> {
    for (let done = 0; done < times; done += 1) {
      try {
        await work()
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error
        return
      }
    }
  }

  async #ask(url: string, question?: Question): Promise<Answer> {
    const answer = await request(url, question)
    assert.ok(answer.status < 400, `${url}: ${answer.status} ${answer.text}`)
    return answer
  }

  /** Asks for a value of the visitor's session. `next`: what it is afterwards, if the request is served. */
  async #askAs(visitor: Visitor, url: string, next: readonly string[]): Promise<string> {
    const before = visitor.allowed
    visitor.allowed = new Set([...before, ...next])
    const headers = visitor.cookie === '' ? {} : { cookie: visitor.cookie }
    const answer = await this.#told(this.#ask(url, { headers }))
    const given = answer.headers['set-cookie']?.[0]?.split(';')[0]
    if (given !== undefined && visitor.cookie === '') visitor.cookie = given
    return (answer.json() as { value: string }).value
  }

  async #count(url: string, visitor: Visitor): Promise<void> {
    const before = visitor.allowed
    const next = [...before].map((value) => String(Number(value) + 1))
    const hadCookie = visitor.cookie !== ''
    let value: string
    try {
      value = await this.#askAs(visitor, `${url}/count`, next)
    } catch (error) {
      if (!hadCookie) visitor.allowed = before // A session whose cookie never came is nobody's.
      throw error
    }
    assert.ok(next.includes(value), `a session counts ${value}, after one of ${[...before].join()}`)
    visitor.allowed = new Set([value])
  }

  async #flash(url: string, visitor: Visitor): Promise<void> {
    const text = `text ${(this.#names += 1)}`
    const hadCookie = visitor.cookie !== ''
    try {
      await this.#askAs(visitor, `${url}/put?text=${encodeURIComponent(text)}`, [text])
    } catch (error) {
      if (!hadCookie) visitor.allowed = new Set([''])
      throw error
    }
    visitor.allowed = new Set([text])
    if (this.#seeded.integer(2) === 0) await this.#take(url, visitor)
  }

  async #take(url: string, visitor: Visitor): Promise<void> {
    const before = visitor.allowed
    const value = await this.#askAs(visitor, `${url}/take`, [''])
    assert.ok(before.has(value), `a flash is ${value}, and was one of ${[...before].join()}`)
    visitor.allowed = new Set([''])
  }

  async #log(url: string): Promise<void> {
    const from = this.#number
    this.#number += linesAtOnce
    await this.#told(this.#ask(`${url}/lines?from=${from}&count=${linesAtOnce}`))
    this.#logged.push(from)
  }

  async #changeRoutes(url: string, cookie: string): Promise<void> {
    const there = [...this.#routes].filter(([, state]) => state === true).map(([name]) => name)
    const removes = there.length > 0 && this.#seeded.integer(4) === 0
    const name = removes ? this.#seeded.pick(there) : `r${(this.#names += 1)}`
    const record = { name, url: `/${name}`, action: 'saves.mjs@hello', persist: true }
    this.#routes.set(name, undefined)
    const body = JSON.stringify(removes ? { name } : record)
    await this.#told(this.#ask(`${url}/svc-routes/${removes ? 'delete' : 'add'}`, { headers: { cookie }, body }))
    this.#routes.set(name, !removes)
  }

  async #setUp(url: string): Promise<void> {
    const wanted = this.#newCredentials()
    this.#offered = wanted
    await this.#told(this.#ask(`${url}/svc-setup`, form({ ...wanted, password2: wanted.password })))
    this.#credentials = wanted
  }

  async #signIn(url: string): Promise<string> {
    if (this.#credentials === none) await this.#setUp(url)
    const answer = await this.#ask(`${url}/svc-login`, form({ ...this.#credentials }))
    return answer.headers['set-cookie']?.[0]?.split(';')[0] ?? assert.fail('nobody was signed in')
  }

  #newCredentials(): Credentials {
    const name = `admin${(this.#names += 1)}`
    return { user: name, password: `secret of ${name}` }
  }

  #forgetCredentials(): void {
    this.#credentials = none
    const file = join(this.folder, 'svc.json')
    const { admin: _admin, ...others } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
    writeFileSync(file, JSON.stringify(others))
  }

  /** What the file holds: exactly one of those that it may hold. */
  #savedOf(possible: readonly Credentials[]): Credentials {
    const { admin = {} } = JSON.parse(readFileSync(join(this.folder, 'svc.json'), 'utf8')) as {
      readonly admin?: { readonly user?: string; readonly password?: string; readonly secret?: string }
    }
    const { user = '', password = '', secret = '' } = admin
    const found = possible.find((one) => one.user === user && hashOf(one.password) === password)
    assert.ok(found !== undefined, `svc.json holds ${JSON.stringify(admin)}`)
    assert.equal(secret === '', user === '', 'the secret is of other credentials than the name')
    return found
  }

  /** Every file is whole: what was there before, or what was to be saved. */
  #checkFiles(): void {
    this.#credentials = this.#savedOf(this.#credentials === none ? [none, this.#offered] : [this.#credentials])
    const file = join(this.folder, 'routes/admin.json')
    const records = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { readonly name: string }[]) : []
    const saved = new Set(records.map(({ name }) => name))
    for (const [name, state] of this.#routes) {
      if (state !== undefined) assert.equal(saved.has(name), state, `the route ${name} in admin.json`)
      this.#routes.set(name, saved.has(name))
    }
    assert.ok([...saved].every((name) => savedRoute.test(name) && this.#routes.has(name)))
    this.#checkSessions()
    this.#checkLines()
    const folders = ['.', 'routes', 'sessions'].map((name) => join(this.folder, name)).filter((name) => existsSync(name))
    const names = folders.flatMap((name) => readdirSync(name))
    this.seen.temporaryFiles = names.filter((name) => name.endsWith('.tmp')).length
  }

  #checkSessions(): void {
    const folder = join(this.folder, 'sessions')
    if (!existsSync(folder)) return
    for (const name of readdirSync(folder)) {
      if (!name.endsWith('.json')) continue
      const { fields } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { readonly fields: unknown }
      assert.ok(Array.isArray(fields), name)
    }
  }

  /** No line is there twice or out of its place. Rotated files are removed when they have been looked at. */
  #checkLines(): void {
    const folder = join(this.folder, '.logs')
    if (!existsSync(folder)) return
    const { numbers } = readNumbers(folder, 'general')
    numbers.forEach((number, at) => {
      const before = numbers[at - 1]
      assert.ok(before === undefined || number === before + 1 || number % linesAtOnce === 0, `no line ${number - 1}`)
    })
    // The lines of its last turn may not have been written yet when a request was answered.
    const there = new Set(numbers)
    for (const from of this.#logged) assert.ok(there.has(from + linesAtOnce - linesInTurn - 1), `no lines ${from}`)
    this.#logged = []
    for (const name of readdirSync(folder)) {
      if (!name.startsWith('svc_')) continue
      this.seen.rotations += 1
      unlinkSync(join(folder, name))
    }
  }

  /** What was acknowledged is there for clients as well. */
  async #checkAnswers(url: string): Promise<void> {
    for (const visitor of this.#counters) {
      if (visitor.cookie === '') continue
      const before = visitor.allowed
      const value = await this.#askAs(visitor, `${url}/value`, [])
      assert.ok(before.has(value), `a session counts ${value}, and should be one of ${[...before].join()}`)
      visitor.allowed = new Set([value])
    }
    for (const visitor of this.#flashes) if (visitor.cookie !== '') await this.#take(url, visitor)
    for (const [name, isThere] of [...this.#routes].slice(-20)) {
      const { status } = await request(`${url}/${name}`)
      assert.equal(status, isThere === true ? 200 : 404, `the route ${name}`)
    }
    if (this.#credentials !== none) await this.#signIn(url)
  }

  async #told<T>(answer: Promise<T>): Promise<T> {
    try {
      const result = await answer
      this.#tell(true)
      return result
    } catch (error) {
      this.#tell(false)
      throw error
    }
  }

  #tell(answered: boolean): void {
    this.seen[answered ? 'answered' : 'unanswered'] += 1
  }
}

function hashOf(password: string): string {
  return password === '' ? '' : createHash('md5').update(password).digest('hex')
}

function form(fields: Readonly<Record<string, string>>): Question {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  return { headers, body: new URLSearchParams(fields).toString() }
}

/** As the tests themselves are run. */
function nodeOptions(): string[] {
  const runsTypeScript = Boolean((process.features as { typescript?: string | false }).typescript)
  if (process.env['SVC_TEST_TARGET'] === 'dist') return runsTypeScript ? ['--no-experimental-strip-types'] : []
  return runsTypeScript ? [] : ['--import', import.meta.resolve('tsx')]
}
