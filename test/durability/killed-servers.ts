/**
 * What is killed while jobs or events pass: a server with one or several processes, or several nodes and their Redis.
 */
import type { TestContext } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import type { Files } from '../support/application.ts'
import { launch, type Launched } from '../support/launch.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'

/** Who serves. */
export interface Serving {
  /** `server.processes` of a single server: with several, every other kill ends one worker. */
  readonly processes: number
  /** 0: a single server without an engine. Else so many nodes with Redis, which are killed in turn with it. */
  readonly nodes: number
}

/** Servers of the same application, which can be killed. `GET /pid` must return the process id. */
export class KilledServers {
  readonly #t: Pick<TestContext, 'after'>
  readonly #serving: Serving
  readonly #folders: readonly string[]
  readonly #redis: RedisServer | undefined
  readonly #servers: (Launched | undefined)[]
  readonly #bases: string[]
  #redisIsDown = false
  #kills = 0
  #asked = 0

  private constructor(t: Pick<TestContext, 'after'>, serving: Serving, files: Files, redis: RedisServer | undefined) {
    this.#t = t
    this.#serving = serving
    this.#redis = redis
    const config = {
      'app.env': 'dev',
      'dev.watch': false,
      'server.processes': serving.processes,
      ...(redis === undefined ? {} : { 'shared.url': redis.url }),
    }
    this.#folders = Array.from({ length: Math.max(1, serving.nodes) }, () => applicationFolder(files, config))
    this.#servers = this.#folders.map(() => undefined)
    this.#bases = this.#folders.map(() => '')
  }

  /** Makes them; none runs yet. */
  static async create(t: Pick<TestContext, 'after'>, serving: Serving, files: Files): Promise<KilledServers> {
    const redis = serving.nodes === 0 ? undefined : await startRedis(t, { args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
    return new KilledServers(t, serving, files, redis)
  }

  /** Whether every server is killed. */
  get areDown(): boolean {
    return this.#servers.every((server) => server === undefined)
  }

  /** The address of one of them, in turn; it may have been killed. */
  get base(): string {
    return this.#bases[(this.#asked += 1) % this.#bases.length] as string // The index of one of them.
  }

  /** Starts those that were killed. Resolves when they listen. */
  async start(): Promise<void> {
    if (this.#redisIsDown) await this.#redis?.start()
    this.#redisIsDown = false
    await Promise.all(
      this.#folders.map(async (cwd, at) => {
        if (this.#servers[at] !== undefined) return
        const server = launch(this.#t, ['start'], { cwd })
        this.#bases[at] = await server.listening()
        this.#servers[at] = server
      }),
    )
  }

  /** Kills the next of them: one server, one worker, or Redis. Resolves when it has ended. */
  async killNext(): Promise<void> {
    const kill = (this.#kills += 1)
    const { processes } = this.#serving
    if (this.#redis !== undefined && kill % (this.#servers.length + 1) === 0) {
      this.#redisIsDown = true
      return this.#redis.kill()
    }
    if (this.#redis === undefined && processes > 1 && kill % 2 === 0) return killWorker(this.base)
    await this.#kill(kill % this.#servers.length)
  }

  /** Kills all that run. */
  async killAll(): Promise<void> {
    for (const at of this.#servers.keys()) await this.#kill(at)
  }

  async #kill(at: number): Promise<void> {
    const killed = this.#servers[at]
    this.#servers[at] = undefined
    killed?.child.kill('SIGKILL')
    await killed?.ended
  }
}

async function killWorker(base: string): Promise<void> {
  try {
    process.kill(Number(await (await fetch(`${base}/pid`)).text()), 'SIGKILL')
  } catch {
    // It is being replaced.
  }
}
