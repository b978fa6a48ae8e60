/**
 * The load: `wrk`, Debian's package, with one thread on a core of its own.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { endWithThis } from './children.ts'

/** A request as it is sent again and again. */
export interface LoadRequest {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  /** '' for none. */
  readonly body: string
  readonly status: number
}

export interface LoadOptions {
  /** The core that it is pinned to. */
  readonly core: number
  readonly connections: number
  readonly seconds: number
  /** Where the script of a POST may be written. */
  readonly scriptFile: string
}

/** What a load came to. */
export interface LoadResult {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** A load that could not be made, or not all of whose answers were right. */
export class LoadError extends Error {}

/** A load that is made in turns. */
export interface LoadInTurns {
  /** Goes on. */
  go(): void
  /** Stops until `go`; what was sent is still answered. */
  wait(): void
  /** Goes on, ends, and says how many requests were answered. Rejects with LoadError as `load` does. */
  end(): Promise<number>
}

const unitsMs: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000 }

/** The programs that are not on this machine, with the advice what to do; '' when all are there. */
export function missingPrograms(): string {
  const packages = { wrk: 'wrk', taskset: 'util-linux' }
  const missing = Object.entries(packages).filter(([program]) => spawnSync(program, ['-V']).error !== undefined)
  if (missing.length === 0) return ''
  const [programs, names] = [0, 1].map((at) => missing.map((entry) => entry[at]).join(' '))
  return `The load generator is missing (${programs}): apt-get install ${names}`
}

/**
 * Makes load for a while.
 * @throws LoadError when wrk fails, an answer has another status, or a connection breaks
 */
export function load(request: LoadRequest, options: LoadOptions): Promise<LoadResult> {
  return startWrk(request, options).result
}

/** Begins a load that waits at once. `seconds` is the most that it may last, with all its waiting. */
export function startInTurns(request: LoadRequest, options: LoadOptions): LoadInTurns {
  const { child, result } = startWrk(request, options)
  child.kill('SIGSTOP')
  return {
    go: () => void child.kill('SIGCONT'),
    wait: () => void child.kill('SIGSTOP'),
    end: async () => {
      child.kill('SIGCONT')
      // It ends within a tenth of a second and prints its report, but only when the first of its threads gets the signal.
      const again = setInterval(() => child.kill('SIGINT'), 20)
      try {
        return (await result).requests
      } finally {
        clearInterval(again)
      }
    },
  }
}

function startWrk(
  { url, method, headers, body, status }: LoadRequest,
  { core, connections, seconds, scriptFile }: LoadOptions,
): { child: ChildProcess; result: Promise<LoadResult> } {
  const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '--timeout', '10s', ...fields]
  if (method === 'POST') {
    writeFileSync(scriptFile, `wrk.method = "POST"\nwrk.body = ${JSON.stringify(body)}\n`)
    args.push('-s', scriptFile)
  }
  const child = spawn('taskset', ['-c', String(core), 'wrk', ...args, url], { stdio: ['ignore', 'pipe', 'inherit'] })
  endWithThis(child)
  const read = async (): Promise<LoadResult> => {
    const [report, [code]] = await Promise.all([text(child.stdout), once(child, 'exit') as Promise<[number | null]>])
    if (code !== 0) throw new LoadError(`The load on ${url} failed with ${String(code)}: ${report}`)
    return parseReport(report, status)
  }
  return { child, result: read() }
}

/**
 * Reads what wrk prints.
 * @param status that of the answers: wrk counts those that are not 2xx or 3xx
 * @throws LoadError when connections broke, answers have another status, or figures are missing
 */
export function parseReport(report: string, status: number): LoadResult {
  const number = (pattern: RegExp): number => Number(pattern.exec(report)?.[1])
  const requests = number(/(\d+) requests in /)
  const others = number(/Non-2xx or 3xx responses: (\d+)/) || 0
  const result = {
    requests,
    requestsPerSecond: number(/Requests\/sec:\s+([\d.]+)/),
    p50Ms: latencyMs(report, 50),
    p99Ms: latencyMs(report, 99),
  }
  const right = status < 400 ? others === 0 : others === requests
  if (!right || /Socket errors/.test(report) || Object.values(result).some(Number.isNaN) || requests === 0) {
    throw new LoadError(`Not all answers were right:\n${report}`)
  }
  return result
}

function latencyMs(report: string, percent: number): number {
  const [, value, unit = ''] = new RegExp(`^\\s+${percent}%\\s+([\\d.]+)(us|ms|s|m) *$`, 'm').exec(report) ?? []
  return Number(value) * (unitsMs[unit] ?? Number.NaN)
}
