// `npm run mutants`: puts each fault of `mutants.ts` into a copy of the project and looks whether a test fails.
// The fault's own room runs first, up to the first failure; only a fault that survives it meets the whole suite. It ends
// with 1 when a fault survives, and with 2 when a text that a fault replaces is no longer there.
//   npm run mutants -- [--out FILE] [word ...]
// --out keeps the outcomes in a file, and faults that have one there are not tried again. A word is a part of the path of
// the files to try.
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { mutants, type Mutant } from './mutants.ts'

/** How one fault ended. */
interface Outcome {
  readonly file: string
  readonly breaks: string
  /** The first test that failed; undefined: none did. */
  readonly caughtBy: string | undefined
  /** Whether it took the whole suite. */
  readonly whole: boolean
  readonly seconds: number
}

/** The longest that one test may take, in milliseconds: a fault that makes it hang is caught by that. */
const testTimeoutMs = 30_000

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const { values, positionals: words } = parseArgs({
  args: process.argv.slice(2),
  options: { out: { type: 'string' } },
  allowPositionals: true,
})
const out = values.out === undefined ? undefined : resolve(values.out)
const chosen = mutants.filter(({ file }) => words.length === 0 || words.some((word) => file.includes(word)))

const missing = chosen.filter((mutant) => textWith(mutant, root) === undefined)
for (const { file, find } of missing) console.error(`lib/${file} does not hold this text once: ${JSON.stringify(find)}`)
if (missing.length > 0) process.exit(2)

const copy = copyOfProject()
process.on('exit', () => rmSync(copy, { recursive: true, force: true }))
/** Whether the whole suite passes in the copy without a fault: else what fails there would catch every fault. */
let suitePasses = false
const outcomes = new Map<string, Outcome>(outcomesInFile().map((outcome) => [keyOf(outcome), outcome]))
for (const mutant of chosen) {
  const key = keyOf(mutant)
  const outcome = outcomes.get(key) ?? (await tried(mutant))
  outcomes.set(key, outcome)
  if (out !== undefined) writeFileSync(out, `${JSON.stringify([...outcomes.values()], undefined, 2)}\n`)
  const by = outcome.caughtBy === undefined ? 'SURVIVED' : `caught by ${outcome.caughtBy}`
  console.log(`${by}${outcome.whole ? ' (whole suite)' : ''}, ${outcome.seconds} s: ${key}`)
}
const survivors = chosen.filter((mutant) => outcomes.get(keyOf(mutant))?.caughtBy === undefined)
console.log(`${chosen.length - survivors.length} caught, ${survivors.length} survived`)
process.exit(survivors.length === 0 ? 0 : 1)

function keyOf({ file, breaks }: Pick<Mutant, 'file' | 'breaks'>): string {
  return `${file}: ${breaks}`
}

function outcomesInFile(): Outcome[] {
  return out !== undefined && existsSync(out) ? (JSON.parse(readFileSync(out, 'utf8')) as Outcome[]) : [] // As written below.
}

/** The project in a folder of its own, with all that its tests need. */
function copyOfProject(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-mutants-'))
  const left = ['.git', '.cached', '.logs', '.coverage']
  cpSync(root, folder, { recursive: true, filter: (path) => !left.includes(relative(root, path)) })
  return folder
}

/** The file's text with the fault in it; undefined when the text to replace does not stand there once. */
function textWith({ file, find, replace }: Mutant, folder: string): string | undefined {
  const parts = readFileSync(join(folder, 'lib', file), 'utf8').split(find)
  return parts.length === 2 ? parts.join(replace) : undefined
}

async function tried(mutant: Mutant): Promise<Outcome> {
  const path = join(copy, 'lib', mutant.file)
  const original = readFileSync(path, 'utf8')
  const begun = performance.now()
  writeFileSync(path, textWith(mutant, copy) ?? original) // It was looked at above that the text is there.
  try {
    const room = await firstFailure(mutant.tests ?? [`test/${dirname(mutant.file)}/`])
    const caughtBy = room ?? (await firstFailure([]))
    if (room === undefined) await checkSuite(path, original)
    const seconds = Math.round((performance.now() - begun) / 1000)
    return { file: mutant.file, breaks: mutant.breaks, caughtBy, whole: room === undefined, seconds }
  } finally {
    writeFileSync(path, original)
  }
}

/** Ends the program when the suite fails without a fault. It is run once, after the first fault that needed all of it. */
async function checkSuite(path: string, original: string): Promise<void> {
  if (suitePasses) return
  writeFileSync(path, original)
  const failure = await firstFailure([])
  suitePasses = failure === undefined
  if (suitePasses) return
  console.error(`The suite fails without a fault: ${failure}`)
  process.exit(2)
}

/** Runs tests up to the first that fails. Resolves with its name; undefined when all pass. */
function firstFailure(tests: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    // The test of this list fails for every fault.
    const args = ['test/run.js', `--timeout=${testTimeoutMs}`, '!test/mutants/', ...tests]
    const run = spawn(process.execPath, args, { cwd: copy, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    let text = ''
    let failure: string | undefined
    const hear = (chunk: string): void => {
      text += chunk
      const found = /^[ \t]*✖ (.+?)(?: \([\d.]+ms\))?$/m.exec(text)?.[1]
      if (found === undefined || failure !== undefined) return
      failure = found
      if (run.pid !== undefined) process.kill(-run.pid, 'SIGKILL') // All that the run has started, too.
    }
    run.stdout.setEncoding('utf8').on('data', hear)
    run.stderr.setEncoding('utf8').on('data', hear)
    run.on('error', reject)
    run.on('close', (status) => {
      resolve(failure ?? (status === 0 ? undefined : `the run itself, which ended with ${status}`))
    })
  })
}
