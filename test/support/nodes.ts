/** Several nodes of one application with one Redis, as the proxies of docs/deploy have them behind them. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { applicationFolder } from './application-folder.ts'
import type { Files } from './application.ts'
import { freePort } from './free-port.ts'
import { launch, type Launched } from './launch.ts'
import { startRedis, type RedisServer } from './redis-server.ts'
import { serviceManager } from './service-manager.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { waitingApplication } from './waiting-application.ts'

/** A server in a separate process, which can be stopped and started again on the same port. */
export interface Node {
  readonly port: number
  /** Resolves with its process id when it listens. */
  start(): Promise<number>
  /** Sends SIGTERM. Resolves when it has ended; rejects when it ended with another status than 0. */
  stop(): Promise<void>
  /** Ends it at once (SIGKILL); resolves when it has ended. */
  kill(): Promise<void>
}

/** How a node is started: with a socket that is kept while it is away, as systemd does, or on a port that is closed then. */
export type NodeKind = 'kept' | 'plain'

export interface Nodes {
  readonly nodes: readonly Node[]
  /** The process ids at the start. */
  readonly pids: readonly number[]
  readonly redis: RedisServer
  /** The bodies that `POST /add` received on all nodes, in order of arrival. */
  added(): string[]
}

/**
 * What the nodes serve, besides that of `waitingApplication`: `/` the process id, `/in` and `/user` a session, `POST /add`
 * what is noted each time it is carried out, some time before its answer, `POST /size` the length of a body, `/ask` a long poll of a second,
 * `/wait` one of half a minute.
 */
export function nodeApplication(notes: string): Files {
  return {
    ...waitingApplication,
    'routes/nodes.json': [
      { name: 'in', url: '/in', action: 'nodes.mjs@begin', middleware: 'SVC_MwSession' },
      { name: 'user', url: '/user', action: 'nodes.mjs@user', middleware: 'SVC_MwSession' },
      { name: 'add', url: '/add', method: 'POST', action: 'nodes.mjs@add' },
      { name: 'size', url: '/size', method: 'POST', action: 'nodes.mjs@size' },
      { name: 'ask', url: '/ask', action: 'nodes.mjs@ask' },
      { name: 'wait', url: '/wait', action: 'nodes.mjs@wait' },
    ],
    'home.mjs': waitingApplication['home.mjs'].replace("'home'", 'String(process.pid)').replace('id: id.length', 'id'),
    'nodes.mjs': `import { appendFileSync } from 'node:fs'
      import { setTimeout as delay } from 'node:timers/promises'
      export const begin = ({ session }) => { session.set('user', 'Ada'); return 'in' }
      export const user = ({ session }) => session.get('user', 'nobody')
      export const add = async ({ readText, text }) => {
        const body = await readText()
        appendFileSync(${JSON.stringify(notes)}, body + '\\n')
        await delay(20)
        return text(body)
      }
      export const size = async ({ readBytes }) => ({ size: (await readBytes()).length })
      export const ask = ({ channel, longPoll }) => longPoll(channel('c'), { timeout_s: 1 })
      export const wait = ({ channel, longPoll }) => longPoll(channel('c'))`,
  }
}

/**
 * Starts nodes; they and Redis end with the test.
 * @param config keys of `svc.json`, added to: `dev`, the hosts of the site and of this machine, 127.0.0.1 as the trusted proxy, the engine
 */
export async function startNodes(
  t: Pick<TestContext, 'after'>,
  kind: NodeKind,
  config: Readonly<Record<string, unknown>> = {},
): Promise<Nodes> {
  const redis = await startRedis(t)
  const notes = join(temporaryFolder(), 'notes')
  const all = {
    'app.env': 'dev', // The status then needs no sign-in.
    'server.allowed_hosts': ['www.example.org', '127.0.0.1'],
    'server.trusted_proxies': ['127.0.0.1'],
    'shared.url': redis.url,
    ...config,
  }
  const nodes = await Promise.all(
    [1, 2, 3].map(() => (kind === 'kept' ? keptNode : plainNode)(t, applicationFolder(nodeApplication(notes), all))),
  )
  const pids = await Promise.all(nodes.map((node) => node.start()))
  const added = (): string[] => (existsSync(notes) ? readFileSync(notes, 'utf8').split('\n').slice(0, -1) : [])
  return { nodes, pids, redis, added }
}

/** A node behind a socket that is there before it and after it. */
export async function keptNode(t: Pick<TestContext, 'after'>, cwd: string): Promise<Node> {
  const service = await serviceManager(t, { cwd })
  return {
    port: service.port,
    start: () => service.start(),
    stop: async () => {
      service.kill('SIGTERM')
      ensureStopped(await service.ended(), service.output())
    },
    kill: async () => {
      service.kill('SIGKILL')
      await service.ended()
    },
  }
}

/** A node that opens its port itself: while it is away, connections are refused. */
export async function plainNode(t: Pick<TestContext, 'after'>, cwd: string): Promise<Node> {
  const port = await freePort()
  let launched: Launched
  return {
    port,
    start: async () => {
      launched = launch(t, ['--port', `${port}`], { cwd })
      await launched.listening()
      return launched.child.pid as number // It listens.
    },
    stop: async () => {
      launched.child.kill('SIGTERM')
      ensureStopped(await launched.ended, launched.stdout() + launched.stderr())
    },
    kill: async () => {
      launched.child.kill('SIGKILL')
      await launched.ended
    },
  }
}

function ensureStopped(ending: unknown, output: string): void {
  if (ending !== 0) throw new Error(`The node ended with ${String(ending)}:\n${output}`)
}
