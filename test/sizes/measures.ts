/**
 * What there is to read: the sizes of `lib/` that have a budget. `npm run sizes` prints them, and a test holds them.
 */
import { join } from 'node:path'
import { optionalRooms, tierOneRooms } from '../../lib/proof/tiers.ts'
import { commentLines, exportedNames, functionsOf, readSources, type Source } from './scan.ts'

/** A size. */
export interface Measure {
  readonly what: string
  readonly value: number
  /** What `npm test` allows, with five percent of room; absent: it has a test of its own, or none. */
  readonly limit?: number
  /** What `npm run sizes` allows. */
  readonly budget?: number
}

/** The rooms that an auditor reads first, by the paths of their files relative to `lib/`. */
export const tierOne = new RegExp(`^(?:${tierOneRooms.join('|')})/`)
const distribution = /^(?:cluster|nodes|redis)\//
const optional = new RegExp(`^(?:${optionalRooms.join('|')})/`)

/**
 * Measures the sources of a checkout.
 * @param loaded the files that a plain start has loaded, relative to `lib/`; undefined: it was not looked at
 */
export function measure(checkout: string, loaded?: readonly string[]): Measure[] {
  const sources = readSources(join(checkout, 'lib'))
  const functions = sources.flatMap(functionsOf)
  const all = linesOf(sources)
  const plain = loaded === undefined ? [] : sources.filter(({ path }) => loaded.includes(path))
  const measures: Measure[] = [
    { what: 'files', value: sources.length, limit: 416, budget: 340 },
    { what: 'lines', value: all, limit: 52_900, budget: 41_500 },
    { what: 'percent of the lines that are comments', value: Math.round((100 * sumOf(sources, commentLines)) / all) },
    { what: 'exported names', value: sumOf(sources, (source) => exportedNames(source).length), limit: 1430, budget: 1150 },
    { what: 'files outside a room', value: sources.filter(({ path }) => !path.includes('/')).length, limit: 4, budget: 4 },
    { what: 'lines of the longest function, nested ones apart', value: Math.max(...functions.map(({ ownLines }) => ownLines)), limit: 100, budget: 80 },
    {
      what: 'lines for several processes and machines',
      value: linesOf(sources.filter(({ path }) => distribution.test(path))),
      limit: 7000,
      budget: 5700,
    },
    { what: 'lines of the least server', value: linesOf(sources.filter(({ path }) => !optional.test(path))), budget: 28_500 },
    { what: 'lines of tier 1', value: linesOf(sources.filter(({ path }) => tierOne.test(path))), limit: 11_800, budget: 10_700 },
    { what: 'lines of metrics/', value: linesOf(sources.filter(({ path }) => path.startsWith('metrics/'))), limit: 1385, budget: 1300 },
  ]
  if (loaded === undefined) return measures
  return [
    ...measures,
    { what: 'files that a plain start loads', value: plain.length, limit: 292, budget: 246 },
    { what: 'lines that a plain start loads', value: linesOf(plain), limit: 35_400, budget: 28_500 },
  ]
}

function linesOf(sources: readonly Source[]): number {
  return sumOf(sources, ({ lines }) => lines.length)
}

function sumOf(sources: readonly Source[], value: (source: Source) => number): number {
  return sources.reduce((sum, source) => sum + value(source), 0)
}
