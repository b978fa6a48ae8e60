/**
 * `npm run sizes [-- CHECKOUT]`: what there is to read of this checkout, or of another one, with the budget of each size.
 * What a plain start loads is looked at by running it.
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
  for (const { what, value, budget } of measure(checkout, loaded)) {
    console.log(`| ${what} | ${value.toLocaleString('en')} | ${budget?.toLocaleString('en') ?? ''} |`)
  }
} finally {
  for (const end of endings.reverse()) await end()
}
