/**
 * One soak: rounds of mixed traffic, and after each a look at what the server holds when nobody is there.
 *
 * Surprise: each round is a bench window. Its end is read when all clients have gone, so that the windows together with
 * the few requests that no window shows are exactly the lines of the access log.
 */
import { setMaxListeners } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Seeded } from '../support/seeded.ts'
import { withoutNode } from '../support/node-warnings.ts'
import { until } from '../support/until.ts'
import { add, nothing, readAccessTotals, type Totals } from './access-totals.ts'
import type { SoakConfiguration } from './application.ts'
import type { Place } from './client.ts'
import { Operator } from './operator.ts'
import { Pace } from './pace.ts'
import { startSoaked, type SoakedServer } from './server.ts'
import { Tallies } from './tallies.ts'
import { visitServer } from './traffic.ts'
import type { Round } from './verdict.ts'

export interface SoakOptions extends SoakConfiguration {
  readonly seed: number
  readonly warmUpRounds: number
  /** Rounds after the warm-up. */
  readonly rounds: number
  readonly roundMs: number
  /** Requests a second, above 0; undefined: as fast as they are answered. */
  readonly requestsPerSecond?: number | undefined
  /** Whether the access logs of all rounds stay: about 40 MB a minute. Else each is removed when it has been read. */
  readonly keepAccessLogs: boolean
  /** By which Node runs the launcher. */
  readonly nodeOptions: readonly string[]
  /** Is told of each round as it ends, with the complaints so far; those of the warm-up are the first. */
  readonly onRound?: (round: Round, number: number, complaints: number) => void
}

/** What a soak found. */
export interface SoakReport {
  /** The rounds after the warm-up. */
  readonly rounds: readonly Round[]
  readonly tallies: Tallies
  readonly moduleChanges: number
  /** By the counters of the server. */
  readonly counted: Totals
  /** By the access log. */
  readonly logged: Totals
  /** The files of the access log where they were kept; {@link removeLogs} removes them. */
  readonly accessLogs: readonly string[]
  removeLogs(): void
}

/** Soaks a server of its own, which has ended when this resolves. */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-soak-'))
  const removeLogs = (): void => rmSync(folder, { recursive: true, force: true })
  let server: SoakedServer | undefined
  try {
    server = await startSoaked(folder, options, options.nodeOptions)
    return { ...(await soak(server, options)), removeLogs }
  } catch (error) {
    server?.kill()
    removeLogs()
    throw error
  }
}

async function soak(server: SoakedServer, options: SoakOptions): Promise<Omit<SoakReport, 'removeLogs'>> {
  const tallies = new Tallies()
  const seeds = new Seeded(options.seed)
  const pace = new Pace(options.requestsPerSecond)
  const placeOf = (signal: AbortSignal): Place => {
    return { port: server.port, tallies, random: new Seeded(seeds.integer(2 ** 32)), pace, signal }
  }
  const operator = new Operator(server, placeOf(new AbortController().signal))
  const begin = performance.now()
  const rounds: Round[] = []
  let counted = nothing
  let logged = nothing
  const accessLogs: string[] = []
  const readAccessLogs = async (names: RegExp): Promise<void> => {
    for (const file of filesOfLogs(server.folder, names).filter((path) => !accessLogs.includes(path))) {
      logged = add(logged, await readAccessTotals(file))
      if (options.keepAccessLogs) accessLogs.push(file)
      else rmSync(file)
    }
  }
  await operator.signIn()
  for (let number = 0; number < options.warmUpRounds + options.rounds; number += 1) {
    const over = new AbortController()
    setMaxListeners(0, over.signal) // Every visitor listens to it.
    const traffic = Promise.all([visitServer(() => placeOf(over.signal)), operator.work(over.signal)])
    await delay(options.roundMs)
    over.abort()
    await traffic
    await operator.changeModule()
    const busy = await whenIdle(operator)
    const round = {
      seconds: (performance.now() - begin) / 1000,
      requests: tallies.total,
      holdings: await server.holdings(),
      busy,
    }
    counted = add(counted, await endWindow(operator, tallies))
    await operator.rotateAccessLog()
    await readAccessLogs(/^access\.log\.\d+$/)
    if (number >= options.warmUpRounds) rounds.push(round)
    options.onRound?.(round, number, tallies.complaintCount)
  }
  operator.close()
  const { status, signal, stderr } = await server.stop()
  if (status !== 0) tallies.complain(`the server ended with ${status ?? signal}`)
  if (stderr !== '') tallies.complain(`the server wrote to standard error: ${stderr}`)
  await readAccessLogs(/^access\.log/)
  return { rounds, tallies, moduleChanges: operator.moduleChanges, counted, logged, accessLogs }
}

interface Status {
  readonly requests: { total: number; active: number; by_class: Readonly<Record<string, number>>; left: number; bytes_out: number }
  readonly connections: { active: number }
  readonly pool_http: { busy: number; queue: number }
  readonly pool_ws: { active: number }
  readonly pool_rest: { sse: number; longpoll: number; queue: number }
  readonly log: { lost: number }
  readonly access_log: { lost: number }
  readonly warnings: readonly string[]
}

/** Waits until nobody is there but the operator. Returns what is there, without the operator. */
async function whenIdle(operator: Operator): Promise<Record<string, number>> {
  let busy: Record<string, number> = {}
  await until(async () => {
    const { text } = await operator.read('/svc-status')
    const status = JSON.parse(text) as Status
    busy = {
      'active requests': status.requests.active - 1,
      connections: status.connections.active - 1,
      'HTTP workers': status.pool_http.busy,
      'HTTP queue': status.pool_http.queue,
      WebSockets: status.pool_ws.active,
      streams: status.pool_rest.sse,
      'long polls': status.pool_rest.longpoll,
      'REST queue': status.pool_rest.queue,
      'lost lines': status.log.lost + status.access_log.lost,
      warnings: withoutNode(status.warnings).length,
    }
    return Object.values(busy).every((count) => count === 0)
  }).catch(() => undefined) // What is still there is in the verdict.
  return busy
}

/** Ends the window and begins the next. Returns the requests of it, with the two that do so and that it does not show. */
async function endWindow(operator: Operator, tallies: Tallies): Promise<Totals> {
  const stop = await operator.read('/svc-bench-stop')
  const start = await operator.read('/svc-bench-start')
  if (start.text !== '{"bench":"start"}') tallies.complain(`bench-start answered ${start.text}`)
  const { requests } = (JSON.parse(stop.text) as { metrics: Status }).metrics
  // Who leaves a wait is counted apart, and has 499 in the access log.
  const byClass = { ...requests.by_class, '4xx': (requests.by_class['4xx'] ?? 0) + requests.left }
  const window: Totals = { requests: requests.total, byClass, bytes: requests.bytes_out }
  const bytes = Buffer.byteLength(stop.text) + Buffer.byteLength(start.text)
  return add(window, { requests: 2, byClass: { '2xx': 2 }, bytes })
}

function filesOfLogs(folder: string, names: RegExp): string[] {
  const logs = join(folder, '.logs')
  return readdirSync(logs)
    .filter((name) => names.test(name))
    .map((name) => join(logs, name))
}
