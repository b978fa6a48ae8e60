/** The process that `parsers.ts` starts. */
import type { Job, Message } from './parsers.ts'
import { shrink } from './shrink.ts'
import { seededFor, shown, type Input, type Target } from './target.ts'
import { targets } from './targets.ts'

/** How often it says where it is, in milliseconds. */
const signEveryMs = 500

const { seed, shares } = JSON.parse(process.argv[2] ?? '') as Job // what `parsers.ts` gives
const say = (message: Message): void => void process.send?.(message)
let signedAt = 0

for (const { name, from, count } of shares) {
  const target = targets.find((one) => one.name === name)
  if (target === undefined) throw new Error(`There is no target ${name}`)
  const startedAt = performance.now()
  for (let index = from; index < from + count; index += 1) {
    sign(`input ${index} of target ${name}, seed ${seed}`)
    const input = target.make(seededFor(seed, index))
    if (problemOf(target, input) === undefined) continue
    const smallest = await shrink(input, (smaller) => problemOf(target, smaller) !== undefined)
    const again = `npm run fuzz -- --seed ${seed} --target ${name} --from ${index} --inputs 1`
    const failure = `input ${index} of target ${name} fails; again: ${again}\nsmallest input: ${shown(smallest)}\n${problemOf(target, smallest)}`
    say({ failure })
    process.disconnect()
    process.exit()
  }
  say({ result: { name, inputs: count, seconds: (performance.now() - startedAt) / 1000 } })
}
process.disconnect()

function sign(at: string): void {
  if (performance.now() - signedAt < signEveryMs) return
  signedAt = performance.now()
  say({ at })
}

/** Why an input fails; undefined when it does not. */
function problemOf(target: Target, input: Input): string | undefined {
  sign('shrinking')
  try {
    target.check(input)
    return undefined
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error)
  }
}
