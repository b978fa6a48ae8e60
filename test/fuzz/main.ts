/** `npm run fuzz [-- --seed N --inputs N --target NAME --from N]`. */
import { parseArgs } from 'node:util'
import { fuzzParsers, type Result } from './parsers.ts'
import { fuzzRequests } from './requests.ts'
import { targets } from './targets.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    inputs: { type: 'string', default: '1000000' },
    target: { type: 'string' },
    from: { type: 'string', default: '0' },
  },
})
const [seed, inputs, from] = [values.seed, values.inputs, values.from].map((text) => {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`Cannot fuzz: --seed, --inputs and --from are whole numbers: one is ${text}`)
  return number
}) as [number, number, number] // as many as there are texts

/** Of a thousand inputs, those that go over sockets. */
const requestShare = 250
const chosen = targets.filter(({ name }) => values.target === undefined || values.target === name)
const withRequests = values.target === undefined || values.target === 'requests'
const total = chosen.reduce((sum, { share }) => sum + share, withRequests ? requestShare : 0)
console.log(`seed ${seed}`)
await fuzzParsers({ seed, shares: chosen.map(({ name, share }) => ({ name, from, count: Math.round((inputs * share) / total) })) }, print)
if (withRequests) {
  const { requests, connections, answers, seconds } = await fuzzRequests(seed, Math.round((inputs * requestShare) / total), from)
  print({ name: 'requests', inputs: requests, seconds })
  console.log(`  on ${connections.toLocaleString('en')} connections, with ${answers.toLocaleString('en')} answers`)
}

function print({ name, inputs: count, seconds }: Result): void {
  console.log(`${name.padEnd(18)}${count.toLocaleString('en').padStart(10)} inputs ${seconds.toFixed(1).padStart(7)} s ${Math.round(count / seconds).toLocaleString('en').padStart(9)}/s`)
}
