/**
 * The request server and the listener of one server, with the limits of its configuration: `server.ts` and
 * `listener.ts`.
 */
import { RateLimited } from '../base/rate-limited.ts'
import type { Certificates } from '../tls/certificates.ts'
import type { Config } from '../config/table.ts'
import { createAddressLimit, type AddressLimit } from '../core/address-limit.ts'
import { guardDescriptors } from './descriptor-guard.ts'
import { maxConnections, processDescriptors } from './file-descriptors.ts'
import { createHostGuard } from '../http/host.ts'
import { Listener } from '../core/listener.ts'
import { Histogram } from '../metrics/histogram.ts'
import { RequestServer, type ServerParts } from '../core/server.ts'

/**
 * How long one turn of the event loop may serve requests before others are queued, in milliseconds. A longer time makes
 * new connections wait, since Node accepts one per turn. With a shorter time, a pause of the garbage collector is
 * enough to queue requests.
 */
const longTurnMs = 100

/** The parts that do not come from the configuration. */
export interface ServingParts
  extends Pick<
    ServerParts,
    | 'registry' | 'ContextClass' | 'staticFiles' | 'accessLog' | 'metrics' | 'log' | 'showsDetails' | 'pageForError'
    | 'headersWithoutRoute' | 'hides' | 'maintenance' | 'preflight' | 'running'
  > {
  readonly certificates: Certificates | undefined
  /** Handles some requests before the server sees them. */
  readonly wrapHandle?: (handle: RequestServer['handle']) => RequestServer['handle']
  /** Counts for all processes; without it, this process counts only its connections. */
  readonly addressLimit: AddressLimit | undefined
  /** Whether an address belongs to a trusted proxy. */
  readonly isTrusted: (address: string) => boolean
  /** Whether this process warns about an unknown version of Node. */
  readonly warnsOfNode: boolean
}

/** The parts that serve requests. */
export interface Serving {
  readonly requests: RequestServer
  readonly listener: Listener
  /** The waiting times of requests that left the queue of `pool_http` for a worker, and of `pool_rest`. */
  readonly queueWaits: Histogram
  readonly restQueueWaits: Histogram
}

/** Creates the parts that serve requests. Nothing listens yet. */
export function createServing(config: Config, parts: ServingParts): Serving {
  const { log, certificates, addressLimit: shared, isTrusted, warnsOfNode, wrapHandle, ...others } = parts
  const queueWaits = new Histogram()
  const restQueueWaits = new Histogram()
  const { warn, info } = log('pool_detector')
  const alertOn = new RateLimited(warn, 1000)
  const alertOff = new RateLimited(info, 1000)
  const requests = new RequestServer({
    ...others,
    pool: {
      workers: config['pool_http.workers'],
      queueSize: config['pool_http.queue_size'],
      alertPercent: config['pool_http.alert_pct'],
      maxWaitMs: config['pool_http.max_wait_ms'],
      turnMs: longTurnMs,
      onWaited: (waitedMs) => queueWaits.record(waitedMs),
      onAlert: (on) => (on ? alertOn.say('pool_http: alert on') : alertOff.say('pool_http: alert off')),
    },
    restPool: {
      workersSse: config['pool_rest.workers_sse'],
      workersLongPoll: config['pool_rest.workers_longpoll'],
      queueSize: config['pool_rest.queue_size'],
      streamTimeoutMs: config['pool_rest.stream_timeout_s'] * 1000,
      onWaited: (waitedMs) => restQueueWaits.record(waitedMs),
    },
    checkHost: createHostGuard(config['server.allowed_hosts']),
    log,
  })
  const maxPerAddress = config['server.max_connections_per_ip']
  const addressLimit = maxPerAddress === 0 ? undefined : (shared ?? createAddressLimit(maxPerAddress))
  const handle = wrapHandle === undefined ? requests.handle : wrapHandle(requests.handle)
  const served = { handle, upgrade: requests.upgrade }
  const descriptors = processDescriptors()
  const listener = new Listener(served, {
    deadlines: {
      headerTimeoutMs: Math.min(config['server.header_timeout_s'], config['server.request_timeout_s']) * 1000,
      requestTimeoutMs: config['server.request_timeout_s'] * 1000,
      keepAliveTimeoutMs: config['server.keep_alive_timeout_s'] * 1000,
      bodyIdleTimeoutMs: config['server.body_idle_timeout_s'] * 1000,
      sendIdleTimeoutMs: config['server.send_idle_timeout_s'] * 1000,
    },
    guardDescriptors: descriptors && ((sockets) => guardDescriptors(descriptors, sockets, log('socket'))),
    certificates,
    warnsOfNode,
    connections: {
      maxOpen: descriptors && maxConnections(descriptors),
      addressLimit,
      isTrusted,
      log: log('socket'),
      onRefused: (refused) => {
        const nowMs = Date.now()
        others.metrics.record(refused, false, nowMs)
        others.accessLog?.write(refused, nowMs)
      },
    },
  })
  return { requests, listener, queueWaits, restQueueWaits }
}
