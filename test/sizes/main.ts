/**
 * `npm run sizes [-- CHECKOUT]`: what there is to read of this checkout, or of another one, with the budget of each size.
 * What a plain start loads is measured by running it. Fails where a size is above its budget.
 */
import { resolve } from 'node:path'
import { root } from '../support/launch.ts'
import { loadedFiles } from './loaded.ts'
import { measure } from './measures.ts'

const endings: (() => unknown)[] = []
const checkout = resolve(process.argv[2] ?? root)
try {
  const loaded = await loadedFiles({ after: (ending) => void endings.push(ending) }, checkout)
  console.log('| what | is | budget |\n| --- | --- | --- |')
  const measures = measure(checkout, loaded)
  for (const { what, value, budget } of measures) {
    console.log(`| ${what} | ${value.toLocaleString('en')} | ${budget?.toLocaleString('en') ?? ''} |`)
  }
  const above = measures.filter(({ value, budget = Infinity }) => value > budget)
  if (above.length > 0) {
    console.error(`\nAbove the budget: ${above.map(({ what }) => what).join('; ')}`)
    process.exitCode = 1
  }
} finally {
  for (const end of endings.reverse()) await end()
}
