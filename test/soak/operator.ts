/**
 * The operator of a soaked server, who never rests: routes come and go, files are reloaded, traces switched, the cache
 * cleared, logs rotated, by HTTP and by signals. Each step says what must be so afterwards.
 */
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { traceModules } from '../../lib/log/trace.ts'
import { until } from '../support/until.ts'
import { admin, changingModule, changingRoutes, changingView } from './application.ts'
import { Client, type Place, type Question, type Reply } from './client.ts'
import type { SoakedServer } from './server.ts'

/** Names of the routes that are added; a name stays in the metrics, so there is an end to them. */
const addedNames = 20

export class Operator {
  readonly #server: SoakedServer
  readonly #client: Client
  #generation = 0
  #accessFiles = 0
  /** Modules that were changed; Node keeps each former one. */
  moduleChanges = 0

  /** @param place its signal never aborts: an operator ends what it has begun */
  constructor(server: SoakedServer, place: Place) {
    this.#server = server
    this.#client = new Client(place)
  }

  /** Signs in. To be called once, first. Throws when it fails. */
  async signIn(): Promise<void> {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    await this.#ask('/svc-login', { body: new URLSearchParams(admin).toString(), headers, expected: [302] })
    if (!this.#client.cookies.has('svc_admin')) throw new Error('The sign-in of the operator failed')
  }

  /** Works until the signal aborts. */
  async work(signal: AbortSignal): Promise<void> {
    const { random, tallies } = this.#client.place
    const steps = [
      () => this.#addAndDelete(false),
      () => this.#addAndDelete(true),
      () => this.#reload('/svc-routes/reload'),
      () => this.#reload('SIGHUP'),
      () => this.#changeView(),
      () => this.#switchTraces(),
      () => this.#clearCache(),
      () => this.rotateAccessLog(),
      () => this.#look(),
    ]
    while (!signal.aborted) {
      try {
        await random.pick(steps)()
      } catch (error) {
        tallies.complain(`operator: ${String(error)}`)
      }
      await delay(20)
    }
  }

  /** Closes its connection. */
  close(): void {
    this.#client.close()
  }

  /** Asks the panel. Throws when there is no answer. */
  async read(path: string): Promise<Reply> {
    const reply = await this.#ask(path)
    if (reply === undefined) {
      const { complaints } = this.#client.place.tallies
      throw new Error(`${path} was not answered; what was wrong so far: ${complaints.join('; ')}`)
    }
    return reply
  }

  /** Changes a module and reloads: what Node keeps of the one before is the one thing that grows. */
  async changeModule(): Promise<void> {
    this.#generation += 1
    this.moduleChanges += 1
    writeFileSync(join(this.#server.folder, 'changing.mjs'), changingModule(this.#generation))
    await this.read('/svc-routes/reload')
    await this.#shows('/changing', `{"generation":${this.#generation}}`)
  }

  /** Does what logrotate does with the access log. */
  async rotateAccessLog(): Promise<void> {
    const file = join(this.#server.folder, '.logs', 'access.log')
    this.#accessFiles += 1
    renameSync(file, `${file}.${this.#accessFiles}`)
    this.#server.signal('SIGUSR2')
    await until(() => existsSync(file))
  }

  async #addAndDelete(persist: boolean): Promise<void> {
    const number = this.#client.place.random.integer(addedNames)
    const record = { name: `added.${number}`, url: `/added/${number}`, action: 'app.mjs@plain', middleware: 'timing', persist }
    await this.#ask('/svc-routes/add', { body: JSON.stringify(record) })
    await this.#ask(`/added/${number}`)
    await this.#ask('/svc-routes/delete', { body: JSON.stringify({ name: record.name }) })
    await this.#ask(`/added/${number}`, { expected: [404] })
  }

  async #reload(how: '/svc-routes/reload' | 'SIGHUP'): Promise<void> {
    this.#generation += 1
    const routes = JSON.stringify(changingRoutes(this.#generation))
    writeFileSync(join(this.#server.folder, 'routes', 'changing.json'), routes)
    if (how === 'SIGHUP') this.#server.signal(how)
    else await this.#ask(how)
    const path = `/svc-routes/match?path=/generation/${this.#generation}`
    await until(async () => (await this.#ask(path))?.text.includes('"matched":true') === true)
    await this.#ask(`/generation/${this.#generation}`)
    await this.#ask(`/generation/${this.#generation - 1}`, { expected: [404] })
  }

  async #changeView(): Promise<void> {
    this.#generation += 1
    writeFileSync(join(this.#server.folder, 'views', 'changing.html'), changingView(this.#generation))
    await this.#shows('/changing-view', `<p>generation ${this.#generation}</p>\n`)
  }

  async #switchTraces(): Promise<void> {
    const module = this.#client.place.random.pick(traceModules)
    await this.#ask('/svc-trace', { body: JSON.stringify({ module, enabled: false }) })
    await this.#ask('/svc-trace?mod=all&on=1')
  }

  async #clearCache(): Promise<void> {
    await this.#ask('/svc-cache-clear')
  }

  /** What an operator looks at. */
  async #look(): Promise<void> {
    const paths = ['status', 'status?monitor=1', 'metrics', 'monitor', 'index', 'routes/list', 'routes/listall', 'bench-stop']
    for (const path of paths) await this.#ask(`/svc-${path}`)
  }

  async #shows(path: string, text: string): Promise<void> {
    await until(async () => (await this.#ask(path))?.text === text)
  }

  #ask(path: string, question: Question = {}): Promise<Reply | undefined> {
    return this.#client.ask('operator', path, question)
  }
}
