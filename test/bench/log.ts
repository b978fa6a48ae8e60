/**
 * `npm run bench -- log`: lines a second to a file, against pino (`minLength: 4096`, synchronous and not) and winston. The
 * same messages for all, each in a process of its own, in alternating rounds; svc rotates its files, the others do not.
 *
 * Surprise: the clock stops when the last line is on disk, and a round counts only when every line is found there once.
 */
import { spawnSync } from 'node:child_process'
import type { StdioOptions } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseConfig } from '../../lib/config/load.ts'
import { Logger } from '../../lib/log/logger.ts'
import { installPeers, requirePeer, versionOf } from './support/peers.ts'
import { median } from './support/statistics.ts'

interface Contender {
  readonly name: string
  /** Returns what writes one line, and what resolves when all lines are on disk. */
  open(folder: string): { write: (message: string) => void; end: () => Promise<void> | void }
}

/** What is used of the peers, which are no dependency, so that their types are not there to check against. */
interface Pino {
  (options: object, destination: PinoDestination): { info(message: string): void }
  destination(options: object): PinoDestination
}
interface PinoDestination {
  end(): void
  once(event: string, listener: () => void): void
}
interface Winston {
  createLogger(options: object): { info(message: string): void; end(): void }
  transports: { File: new (options: object) => { once(event: string, listener: () => void): void } }
  format: { combine(...formats: unknown[]): unknown; timestamp(): unknown; json(): unknown }
}

const rounds = 7
const warmUpLines = 100_000
const measuredLines = 500_000
const linesPerTurn = 100
const rotateAtMb = 10

const contenders: readonly Contender[] = [
  { name: 'svc text', open: (folder) => openSvc(folder, 'text') },
  { name: 'svc json', open: (folder) => openSvc(folder, 'json') },
  { name: 'pino sync', open: (folder) => openPino(folder, true) },
  { name: 'pino async', open: (folder) => openPino(folder, false) },
  { name: 'winston', open: openWinston },
]

const [, , name, folder] = process.argv
if (name !== undefined && folder !== undefined) await runOne(name, folder)
else compareAll()

function compareAll(): void {
  installPeers('pino', 'winston')
  const rates = new Map<string, number[]>(contenders.map((each) => [each.name, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const each of contenders) rates.get(each.name)?.push(measure(each.name))
  }
  const medians = new Map([...rates].map(([each, list]) => [each, median(list)]))
  const medianOf = (each: string): number => medians.get(each) ?? Number.NaN
  const pino = Math.max(medianOf('pino sync'), medianOf('pino async'))
  console.log(`Node ${process.version}, pino ${versionOf('pino')}, winston ${versionOf('winston')}`)
  console.log(`${measuredLines} lines a round, ${linesPerTurn} a turn, all found on disk; medians of ${rounds} rounds`)
  console.log('log'.padEnd(12), 'lines/s'.padStart(12), 'to pino'.padStart(9), 'to winston'.padStart(11))
  for (const [each, rate] of medians) {
    const toPino = (rate / pino).toFixed(2).padStart(9)
    const toWinston = (rate / medianOf('winston')).toFixed(2).padStart(11)
    console.log(each.padEnd(12), Math.round(rate).toLocaleString('en').padStart(12), toPino, toWinston)
  }
}

function measure(contender: string): number {
  const logs = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  try {
    const args = [...process.execArgv, fileURLToPath(import.meta.url), contender, logs]
    const stdio: StdioOptions = ['ignore', 'pipe', 'inherit']
    const { stdout, status } = spawnSync(process.execPath, args, { encoding: 'utf8', stdio })
    if (status !== 0) throw new Error(`The round of ${contender} ended with ${String(status)}`)
    const missing = countMissing(logs)
    if (missing > 0) throw new Error(`${contender}: ${missing} lines are not on disk, or more than once`)
    return Number(stdout)
  } finally {
    rmSync(logs, { recursive: true, force: true })
  }
}

async function runOne(contender: string, logs: string): Promise<void> {
  const { write, end } = contenders.find((each) => each.name === contender)?.open(logs) ?? unknownContender(contender)
  await writeLines(write, 0, warmUpLines)
  const start = performance.now()
  await writeLines(write, warmUpLines, warmUpLines + measuredLines)
  await end()
  const seconds = (performance.now() - start) / 1000
  console.log(measuredLines / seconds)
}

async function writeLines(write: (message: string) => void, from: number, to: number): Promise<void> {
  for (let number = from; number < to; number += 1) {
    write(`user ${number} signed in from 192.0.2.17 and opened the notices`)
    if (number % linesPerTurn === 0) await new Promise(setImmediate)
  }
}

/** The lines that are not found exactly once in all files of the folder. */
function countMissing(logs: string): number {
  const seen = new Uint8Array(warmUpLines + measuredLines)
  for (const file of readdirSync(logs)) {
    for (const [, number] of readFileSync(join(logs, file), 'latin1').matchAll(/user (\d+) signed.*notices.*\n/g)) {
      seen[Number(number)] = (seen[Number(number)] ?? 0) + 1
    }
  }
  return seen.reduce((count, times) => count + (times === 1 ? 0 : 1), 0)
}

function openSvc(logs: string, format: 'text' | 'json'): ReturnType<Contender['open']> {
  const options = { level: 'info', console: false, max_size_mb: rotateAtMb, max_files: 0, format }
  const logger = new Logger(parseConfig({ log: options }, logs).config, logs)
  const log = logger.module('app')
  return { write: (message) => log.info(message), end: () => logger.close() }
}

function openPino(logs: string, sync: boolean): ReturnType<Contender['open']> {
  const pino: Pino = requirePeer('pino')
  const destination = pino.destination({ dest: join(logs, 'pino.log'), minLength: 4096, sync })
  const log = pino({}, destination)
  const end = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => destination.once('close', resolve))
    destination.end()
    await closed
  }
  return { write: (message) => log.info(message), end }
}

function openWinston(logs: string): ReturnType<Contender['open']> {
  const winston: Winston = requirePeer('winston')
  const transport = new winston.transports.File({ filename: join(logs, 'winston.log') })
  const format = winston.format.combine(winston.format.timestamp(), winston.format.json())
  const log = winston.createLogger({ format, transports: [transport] })
  const end = async (): Promise<void> => {
    const finished = new Promise<void>((resolve) => transport.once('finish', resolve))
    log.end()
    await finished
    while (countMissing(logs) > 0) await setTimeout(20) // it says so before its file is complete
  }
  return { write: (message) => log.info(message), end }
}

function unknownContender(contender: string): never {
  throw new Error(`No contender is called ${contender}`)
}
