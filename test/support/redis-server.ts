import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { Redis, type RedisOptions } from '../../lib/redis/client.ts'
import { parseRedisUrl } from '../../lib/config/redis-url.ts'
import { freePort } from './free-port.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** A Redis server of the test's own (Debian's package `redis-server`), which ends with the test. */
export interface RedisServer {
  /** Its address, without user and password. */
  readonly url: string
  /** 0 if it listens only on a Unix socket. */
  readonly port: number
  /** Its process id, new after each start. */
  readonly pid: number
  /** Its working and data folder. */
  readonly folder: string
  /** Asks it a command with `redis-cli`; resolves with what that prints, without the last line end. */
  ask(...command: string[]): Promise<string>
  /** Starts it again after `kill`, on the same address. */
  start(): Promise<void>
  /** Ends it at once (SIGKILL); resolves when it has ended. */
  kill(): Promise<void>
  /** Suspends it (SIGSTOP). */
  pause(): void
  /** Resumes it. */
  resume(): void
}

export interface RedisServerOptions {
  /** Options of redis-server, such as `['--appendonly', 'yes', '--appendfsync', 'always']`; nothing is saved unless they say so. */
  readonly args?: readonly string[]
  /** Whether it listens on a port of 127.0.0.1 instead of a Unix socket. */
  readonly tcp?: boolean
}

/** Starts a server; resolves when it accepts connections. Rejects with advice if the program is not installed. */
export async function startRedis(
  t: Pick<TestContext, 'after'>,
  { args = [], tcp = false }: RedisServerOptions = {},
): Promise<RedisServer> {
  const folder = temporaryFolder()
  const socket = join(folder, 'redis.sock')
  const port = tcp ? await freePort() : 0
  const place = tcp ? ['--bind', '127.0.0.1'] : ['--unixsocket', socket]
  const all = ['--port', `${port}`, ...place, '--dir', folder, '--save', '', ...args]
  let child = await launch(all)
  t.after(() => child.kill('SIGKILL'))
  return {
    url: tcp ? `redis://127.0.0.1:${port}` : `redis+unix://${socket}`,
    port,
    get pid() {
      return child.pid ?? 0
    },
    folder,
    ask: async (...command) => {
      const { stdout } = await promisify(execFile)('redis-cli', [...(tcp ? ['-p', `${port}`] : ['-s', socket]), ...command])
      return stdout.trimEnd()
    },
    start: async () => {
      child = await launch(all)
    },
    kill: async () => {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  }
}

/** Resolves when the server reports that it is ready. */
async function launch(args: readonly string[]): Promise<ChildProcess> {
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  await new Promise<void>((resolve, reject) => {
    child.on('error', (error) => reject(new Error(`redis-server: ${error.message}. Install it: apt-get install redis-server`)))
    child.on('exit', () => reject(new Error(`redis-server ended:\n${printed}`)))
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      printed += piece
      if (/ready to accept connections/i.test(printed)) resolve()
    })
  })
  return child
}

/** A client of a server, closed when the test ends. It has a minute where the machine is slow, unless told otherwise. */
export function openRedis(
  t: Pick<TestContext, 'after'>,
  url: string,
  options: Partial<RedisOptions> = {},
): Redis {
  const target = parseRedisUrl(url)
  const redis = new Redis({ target, name: 'svc-test', connectTimeoutMs: 60_000, commandTimeoutMs: 60_000, ...options })
  t.after(() => redis.close())
  return redis
}
