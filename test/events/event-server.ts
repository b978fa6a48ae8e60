import type { TestContext } from 'node:test'
import { createEvents, type Events, type EventsOptions } from '../../lib/events/events.ts'
import { eventsFeature } from '../../lib/events/feature.ts'
import { createClientAddress } from '../../lib/http/client-address.ts'
import type { FullContext } from '../support/context.ts'
import { createContextClass } from '../../lib/http/features.ts'
import { Listener } from '../../lib/core/listener.ts'
import { silentLogger, type ModuleLogger } from '../../lib/log/logger.ts'
import { compose, type Chain } from '../../lib/chain/compose.ts'
import type { RestPoolOptions } from '../../lib/core/rest-pool.ts'
import { parsePattern } from '../../lib/routing/pattern.ts'
import { Registry } from '../../lib/routing/registry.ts'
import { tenSeconds } from '../support/deadlines.ts'
import { keepingLogger } from '../support/log-lines.ts'
import { RequestServer } from '../../lib/core/server.ts'
import { makeRequestServer } from '../support/request-server.ts'

/** A server with events and nothing else. */
export interface EventServer {
  readonly events: Events
  readonly requests: RequestServer
  readonly port: number
  readonly url: string
  /** The INFO, WARN and ERROR lines so far: module and message. */
  readonly logged: readonly string[]
}

/** The options of the server, besides its actions. */
export interface EventServerOptions extends Partial<EventsOptions> {
  readonly restPool?: Partial<RestPoolOptions>
}

/** Starts a server with actions by path; it is closed when the test ends. */
export async function eventServer(
  t: Pick<TestContext, 'after'>,
  actions: Readonly<Record<string, (ctx: FullContext) => unknown>>,
  options: EventServerOptions = {},
): Promise<EventServer> {
  const logged: string[] = []
  const log = (module: string): ModuleLogger => {
    return keepingLogger((line) => logged.push(`${module}: ${line.replace(/^[A-Z]+ /, '')}`), 'info')
  }
  const events = createEvents({ log, ...options })
  const registry = new Registry<Chain>()
  const reports = { late: () => {}, misuse: () => {} }
  for (const [path, action] of Object.entries(actions)) {
    const record = { name: path, url: path, action: 'test', method: '*', middleware: '', scope: '' }
    registry.add({ record, pattern: parsePattern(path), system: false, target: compose([], action, reports) })
  }
  const services = { bodyLimitBytes: 1000, clientAddress: createClientAddress([]) }
  const requests = makeRequestServer({
    registry,
    ContextClass: createContextClass([eventsFeature(events)], services).ContextClass,
    pool: { workers: 100_000, queueSize: 0 },
    restPool: { workersSse: 10_000, workersLongPoll: 10_000, queueSize: 1000, streamTimeoutMs: 0, ...options.restPool },
    log,
    showsDetails: () => true,
  })
  const listener = new Listener(requests, {
    deadlines: tenSeconds,
    guardDescriptors: undefined,
    certificates: undefined,
    connections: { addressLimit: undefined, isTrusted: () => true, log: silentLogger, onRefused: () => {} },
  })
  const { port } = await listener.listen('127.0.0.1', 0)
  t.after(async () => {
    await Promise.all([listener.stopAccepting(), listener.closeAll()])
    await events.close()
  })
  return { events, requests, port, url: `http://127.0.0.1:${port}`, logged }
}
