// Writes sessions endlessly to the given folder, with a line on standard output for each step: to be killed.
import { FileStore } from '../../lib/session-stores/file-store.ts'
import { changes, fields, id } from './store-values.ts'

const folder = process.argv[2] as string // passed by the parent process
const store = new FileStore({ folder, problemOf: () => undefined, onProblem: console.error })
const filling = 'x'.repeat(20_000)
const hour = 3_600_000
const base = Date.now()

await Promise.all(Array.from({ length: 10 }, (_, at) => write(base + at * 1_000_000)))

async function write(first: number): Promise<void> {
  let number = first
  await store.create(id(number), fields({ first: '0', filling, last: '0' }), hour)
  for (let step = 1; ; step++) {
    const change = changes({ first: `${step}`, last: `${step}` })
    if (step % 5 === 0) await store.rename(id(number), id(++number), change, hour)
    else await store.merge(id(number), change, hour)
    console.log(step)
  }
}
