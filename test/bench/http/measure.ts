/**
 * One workload on one Node: the servers are started and checked, then take turns. Each round gives one sample of each,
 * and each round begins with another server, so that none is always the first after the same neighbour.
 */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { begin, checkAnswer, requestTo } from './answers.ts'
import { cores, startServer, type ServerProcess } from './server-process.ts'
import type { Workload } from './workloads.ts'
import { load, type LoadOptions, type LoadRequest } from './wrk.ts'

/** What one round gave of one server. */
export interface Sample {
  readonly requestsPerSecond: number
  /** The server's processor time for a request, in microseconds. */
  readonly cpuUs: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** What one server did. */
export interface ServerFigures {
  readonly server: string
  readonly samples: readonly Sample[]
  readonly restMiB: number
  readonly loadedMiB: number
}

/** The servers under one number of connections. */
export interface Measurement {
  readonly workload: Workload
  /** The version of Node, without `v`. */
  readonly node: string
  readonly connections: number
  readonly servers: readonly ServerFigures[]
  /** How header fields of a server differ from bare's, by its name. */
  readonly differences: ReadonlyMap<string, string>
}

export interface MeasureOptions {
  readonly workload: Workload
  readonly servers: readonly string[]
  readonly node: { readonly program: string; readonly version: string }
  readonly connections: readonly number[]
  readonly rounds: number
  readonly seconds: number
  /** One that is not there yet. */
  readonly folder: string
}

interface Contestant {
  readonly server: ServerProcess
  readonly request: LoadRequest
  readonly restMiB: number
}

const settleMs = 500
/** Until then V8 may not have compiled for speed what a request needs. */
const warmingRequests = 150_000
const warmingSeconds = 2
const mostWarmings = 10

/**
 * Measures, for each number of connections in turn.
 * @throws Error when a server does not start or answers wrongly; LoadError
 */
export async function measure(options: MeasureOptions): Promise<Measurement[]> {
  const { workload, node, connections, folder } = options
  const servers: ServerProcess[] = []
  try {
    for (const [at, name] of options.servers.entries()) {
      servers.push(await startServer(name, { node: node.program, workload, folder: join(folder, String(at)) }))
    }
    const differences = new Map<string, string>()
    const contestants = await prepare(servers, workload, differences)
    const found: Measurement[] = []
    for (const count of connections) {
      const figures = await playRounds(contestants, count, options)
      found.push({ workload, node: node.version, connections: count, servers: figures, differences })
    }
    return found
  } finally {
    for (const server of servers) await server.stop()
  }
}

/** Bare takes no notice of cookies and tokens: it is sent those of the next. */
async function prepare(
  servers: readonly ServerProcess[],
  workload: Workload,
  differences: Map<string, string>,
): Promise<Contestant[]> {
  await delay(settleMs)
  const contestants: Contestant[] = []
  for (const server of servers) {
    const restMiB = server.residentMiB()
    const source = server.name === 'bare' ? (servers[1] ?? server) : server
    const request = requestTo(server, workload, await begin(source, workload))
    const difference = await checkAnswer(server.name, request, workload)
    if (difference !== '') differences.set(server.name, difference)
    contestants.push({ server, request, restMiB })
  }
  return contestants
}

async function playRounds(
  contestants: readonly Contestant[],
  connections: number,
  { rounds, seconds, folder }: MeasureOptions,
): Promise<ServerFigures[]> {
  const scriptFile = join(folder, 'request.lua')
  const play = ({ server, request }: Contestant, forSeconds: number): Promise<Sample> =>
    sample(server, request, { core: cores.load, connections, seconds: forSeconds, scriptFile })
  const samples = new Map<Contestant, Sample[]>(contestants.map((contestant) => [contestant, []]))
  for (const contestant of contestants) {
    let requests = 0
    for (let time = 0; time < mostWarmings && requests < warmingRequests; time += 1) {
      requests += (await play(contestant, warmingSeconds)).requestsPerSecond * warmingSeconds
    }
  }
  for (let round = 0; round < rounds; round += 1) {
    const first = round % contestants.length
    for (const contestant of [...contestants.slice(first), ...contestants.slice(0, first)]) {
      samples.get(contestant)?.push(await play(contestant, seconds))
    }
  }
  return [...samples].map(([{ server, restMiB }, list]) => {
    return { server: server.name, samples: list, restMiB, loadedMiB: server.residentMiB() }
  })
}

async function sample(server: ServerProcess, request: LoadRequest, options: LoadOptions): Promise<Sample> {
  const before = server.cpuMs()
  const { requests, requestsPerSecond, p50Ms, p99Ms } = await load(request, options)
  return { requestsPerSecond, cpuUs: ((server.cpuMs() - before) * 1000) / requests, p50Ms, p99Ms }
}
