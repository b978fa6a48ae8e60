/**
 * One workload on one Node: the servers are started and checked, then take turns. Each round gives one sample of each,
 * and each round begins with another server, so that none is always the first after the same neighbour.
 *
 * Surprise: a round has two parts. What a machine does besides comes and goes by the second, so rates and processor time are
 * taken in turns of 80 ms, in which the loads of the others are stopped. A stopped load would take its stop for latency, so
 * that is taken from a second of its own.
 */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { begin, checkAnswer, requestTo } from './answers.ts'
import { cores, startServer, type ServerProcess } from './server-process.ts'
import type { Workload } from './workloads.ts'
import { load, startInTurns, type LoadOptions, type LoadRequest } from './wrk.ts'

interface Rate {
  readonly requestsPerSecond: number
  /** The server's processor time for a request, in microseconds. */
  readonly cpuUs: number
}

/** What one round gave of one server. */
export interface Sample extends Rate {
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
  readonly against: string | undefined
  /** One that is not there yet. */
  readonly folder: string
}

interface Contestant {
  readonly server: ServerProcess
  readonly request: LoadRequest
  readonly restMiB: number
}

const settleMs = 500
/** How long a turn is, and a pause behind it in which what was sent is answered. */
export const turnMs = 80
const pauseMs = 4
/** Until then V8 may not have compiled for speed what a request needs. */
const warmingRequests = 150_000
const warmingSeconds = 2
const mostWarmings = 10

/**
 * Measures, for each number of connections in turn.
 * @throws Error when a server does not start or answers wrongly; LoadError
 */
export async function measure(options: MeasureOptions): Promise<Measurement[]> {
  const { workload, node, connections, folder, against } = options
  const servers: ServerProcess[] = []
  try {
    for (const [at, name] of options.servers.entries()) {
      servers.push(await startServer(name, { node: node.program, workload, folder: join(folder, String(at)), against }))
    }
    const differences = new Map<string, string>()
    const contestants = await prepare(servers, workload, differences)
    const found: Measurement[] = []
    for (const [at, count] of connections.entries()) {
      await warmUp(contestants, count, folder, at === 0 ? warmingRequests : 1)
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

/** Sends each so many requests or more, as far as there is time. */
async function warmUp(contestants: readonly Contestant[], connections: number, folder: string, least: number): Promise<void> {
  const options = loadOptions(connections, warmingSeconds, join(folder, 'request.lua'))
  for (const { request } of contestants) {
    let requests = 0
    for (let time = 0; time < mostWarmings && requests < least; time += 1) requests += (await load(request, options)).requests
  }
}

function loadOptions(connections: number, seconds: number, scriptFile: string): LoadOptions {
  return { core: cores.load, connections, seconds, scriptFile }
}

async function playRounds(
  contestants: readonly Contestant[],
  connections: number,
  { rounds, seconds, folder }: MeasureOptions,
): Promise<ServerFigures[]> {
  const optionsFor = (contestant: Contestant, forSeconds: number): LoadOptions => {
    return loadOptions(connections, forSeconds, join(folder, `request-${contestants.indexOf(contestant)}.lua`))
  }
  const samples = new Map<Contestant, Sample[]>(contestants.map((contestant) => [contestant, []]))
  for (let round = 0; round < rounds; round += 1) {
    const row = rotated(contestants, round)
    const rates = await playTurns(row, (contestant) => optionsFor(contestant, mostSeconds(seconds, row.length)), seconds)
    for (const contestant of row) {
      const { p50Ms, p99Ms } = await load(contestant.request, optionsFor(contestant, seconds))
      samples.get(contestant)?.push({ ...(rates.get(contestant) as Rate), p50Ms, p99Ms })
    }
  }
  return [...samples].map(([{ server, restMiB }, list]) => {
    return { server: server.name, samples: list, restMiB, loadedMiB: server.residentMiB() }
  })
}

/** Has each under load for so many seconds, turn by turn. */
async function playTurns(
  contestants: readonly Contestant[],
  optionsFor: (contestant: Contestant) => LoadOptions,
  seconds: number,
): Promise<Map<Contestant, Rate>> {
  const players = contestants.map((contestant) => {
    const { request, server } = contestant
    return { contestant, load: startInTurns(request, optionsFor(contestant)), cpuBefore: server.cpuMs(), playedMs: 0 }
  })
  for (let turn = 0; turn < (seconds * 1000) / turnMs; turn += 1) {
    for (const player of rotated(players, turn)) {
      const from = performance.now()
      player.load.go()
      await delay(turnMs)
      player.load.wait()
      player.playedMs += performance.now() - from
      await delay(pauseMs)
    }
  }
  const rates = new Map<Contestant, Rate>()
  for (const { contestant, load: own, cpuBefore, playedMs } of players) {
    const from = performance.now()
    const requests = await own.end()
    const ms = playedMs + performance.now() - from
    const cpuUs = ((contestant.server.cpuMs() - cpuBefore) * 1000) / requests
    rates.set(contestant, { requestsPerSecond: (requests * 1000) / ms, cpuUs })
  }
  return rates
}

/** Long enough for a load that waits while all others have their turns, on a machine that is slow to give them. */
function mostSeconds(seconds: number, count: number): number {
  return 10 * seconds * count + 60
}

/** The list beginning with another of its entries each time. */
function rotated<T>(list: readonly T[], times: number): T[] {
  const first = times % list.length
  return [...list.slice(first), ...list.slice(0, first)]
}
