/**
 * `npm run soak [-- --minutes N] [--seed N] [--store memory|file] [--pace N] [--goaccess]`: mixed traffic for a time,
 * and what the server holds at its end against what it held after the warm-up. Ends with 1 when something leaks, an
 * answer is not as it must be, or the access log and the counters differ. `--pace`: requests a second; as fast as they
 * are answered unless given.
 */
import { parseArgs } from 'node:util'
import { readWithGoAccess } from './goaccess.ts'
import { runSoak, type SoakReport } from './run.ts'
import { heapSlope, judge, type Round } from './verdict.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: '7' },
    store: { type: 'string', default: 'memory' },
    pace: { type: 'string' },
    goaccess: { type: 'boolean', default: false },
  },
})
const minutes = Number(values.minutes)
const seed = Number(values.seed)
const requestsPerSecond = values.pace === undefined ? undefined : Number(values.pace)
const { store } = values
if (!(minutes > 0)) fail(`--minutes must be over 0: it is ${values.minutes}`)
if (!Number.isInteger(seed)) fail(`--seed must be a whole number: it is ${values.seed}`)
if (requestsPerSecond !== undefined && !(requestsPerSecond > 0)) fail(`--pace must be over 0: it is ${values.pace}`)
if (store !== 'memory' && store !== 'file') fail(`--store must be memory or file: it is ${store}`)

const rounds = 16
const warmUpRounds = 4
const memoryColumns = ['heap MiB', 'external', 'resident']
const roundMs = (minutes * 60_000) / (rounds + warmUpRounds)
const pace = requestsPerSecond === undefined ? 'no pace' : `${requestsPerSecond} requests a second`
console.log(`Node ${process.versions.node}, store ${store}, seed ${seed}, ${pace}`)
console.log(`${minutes} minutes in ${warmUpRounds} + ${rounds} rounds`)
printRow('round', 'seconds', 'requests', 'wrong', ...memoryColumns, 'descriptors', 'handles', 'timers', 'sockets')
const keepAccessLogs = values.goaccess
const report = await runSoak({
  store,
  seed,
  rounds,
  warmUpRounds,
  roundMs,
  requestsPerSecond,
  keepAccessLogs,
  nodeOptions: [],
  onRound: printRound,
})
const good = [printAnswers(report), printVerdict(report), printTotals(report)]
if (values.goaccess) good.push(printGoAccess(report))
report.removeLogs()
process.exit(good.every(Boolean) ? 0 : 1)

function printRound({ seconds, requests, holdings }: Round, number: number, complaints: number): void {
  const { heapUsed, external, rss, descriptors, handles, objects } = holdings
  const name = number < warmUpRounds ? `warm-up ${number + 1}` : String(number - warmUpRounds + 1)
  const memory = [heapUsed, external, rss].map(mebibytes)
  const sums = [descriptors, handles].map((counts) => Object.values(counts).reduce((sum, count) => sum + count, 0))
  const counts = [requests, complaints, ...memory, ...sums, objects['timers'] ?? 0, objects['sockets'] ?? 0]
  printRow(name, seconds.toFixed(0), ...counts)
}

function printAnswers({ tallies }: SoakReport): boolean {
  console.log('\nkind of request: answers by status; clients that left before')
  for (const [kind, { statuses, left }] of tallies.kinds) {
    const answers = [...statuses].sort().map(([status, count]) => `${status}: ${count}`)
    console.log(`  ${kind.padEnd(18)} ${answers.join(', ')}${left === 0 ? '' : `; ${left} left`}`)
  }
  console.log(`${tallies.complaintCount} answers that should not have been`)
  for (const complaint of tallies.complaints) console.log(`  ${complaint}`)
  return tallies.complaintCount === 0
}

function printVerdict({ rounds: measured, moduleChanges }: SoakReport): boolean {
  console.log('')
  printRow('', 'warm-up', 'end', 'tolerance', '')
  const judgements = judge(measured)
  for (const { name, unit, before, after, tolerance, holds } of judgements) {
    const shown = unit === 'bytes' ? [before, after, tolerance].map(mebibytes) : [before, after, tolerance]
    printRow(name, ...shown, holds ? '' : 'LEAK')
  }
  const slope = heapSlope(measured)
  console.log(`heap: ${slope.toFixed(0)} bytes more with each 1000 requests; ${moduleChanges} modules were changed`)
  return judgements.every(({ holds }) => holds)
}

function printTotals({ counted, logged }: SoakReport): boolean {
  console.log(`\ncounters   ${JSON.stringify(counted)}\naccess log ${JSON.stringify(logged)}`)
  return JSON.stringify(counted) === JSON.stringify(logged)
}

function printGoAccess({ counted, accessLogs }: SoakReport): boolean {
  const { failed, ...totals } = readWithGoAccess(accessLogs)
  console.log(`GoAccess   ${JSON.stringify(totals)}, ${failed} lines failed`)
  return failed === 0 && JSON.stringify(totals) === JSON.stringify(counted)
}

function printRow(name: string, ...cells: readonly (string | number)[]): void {
  console.log(name.padEnd(28) + cells.map((cell) => String(cell).padStart(12)).join(''))
}

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(2)
}

function fail(message: string): never {
  console.error(`Cannot soak: ${message}`)
  process.exit(2)
}
