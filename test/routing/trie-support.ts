// The seeded comparison of the router with the reference, for any number of tables.
import assert from 'node:assert/strict'
import { HttpError } from '../../lib/http/errors.ts'
import { Registry } from '../../lib/routing/registry.ts'
import type { Route } from '../../lib/routing/route.ts'
import { Seeded } from '../support/seeded.ts'
import { referenceAllowed, referenceFind } from './reference-matcher.ts'
import type { Answer } from './reference-matcher.ts'
import { route } from './routes.ts'

const numbered = Array.from({ length: 30 }, (_, at) => `res${at}`)
const manySegments = ['res', 'r', 'resource', 'res/1', 'res%', 'rés', '日本', '日木', ...numbered]

interface Alphabet {
  readonly sizes: readonly number[]
  readonly literals: readonly string[]
  readonly segments: readonly string[]
}

/** The alphabets for literals of patterns and segments of paths. */
const alphabets = {
  'few segments': {
    sizes: [3, 8, 20, 60],
    literals: ['a', 'b', 'é', 'c%2Fd', '5%25'],
    segments: ['a', 'b', 'a', 'b', '%61', '%C3%A9', 'é', 'c%2fd', 'c', '5%25', '5%', 'zz', '', '%C3', 'ab'],
  },
  'many segments with the same prefix': {
    sizes: [20, 60, 150],
    literals: manySegments.map(encodeURIComponent),
    segments: [
      ...[...manySegments, ...manySegments.map(encodeURIComponent)],
      ...['%72es', '%72es1', 're', 'res1x', 'xres', '日', '', '%ff'],
    ],
  },
} satisfies Readonly<Record<string, Alphabet>>

/** Compares the router with the reference on random tables and paths, while routes change. */
export function checkAgainstReference(alphabet: keyof typeof alphabets, count: number): void {
  const { sizes, literals, segments }: Alphabet = alphabets[alphabet]
  const seeded = new Seeded(4)
  let found = 0
  let wrong = 0
  for (let table = 0; table < count; table += 1) {
    const size = seeded.pick(sizes)
    const some = (name: string): Route<string> => route(`${someMethods(seeded)} ${somePattern(seeded, literals)}`, name)
    const list = Array.from({ length: seeded.pick([0, size]) }, (_, at) => some(`at once ${at}`))
    const registry = new Registry<string>()
    registry.replaceApplication(list)
    for (let step = 0; step < 2 * size; step += 1) {
      if (list.length > 0 && seeded.integer(4) === 0) {
        list.splice(seeded.integer(list.length), 1)
        registry.replaceApplication(list)
      } else {
        const added = some(`r${step}`)
        list.push(added)
        registry.add(added)
      }
    }
    const routes = list.map(({ record }) => `${record.name}: ${record.method} ${record.url}`).join(', ')
    for (let request = 0; request < 100; request += 1) {
      const method = seeded.pick(['GET', 'HEAD', 'POST', 'OPTIONS', 'PUT'])
      const path = somePath(seeded, segments)
      const answer = referenceFind(list, method, path)
      if (answer === 'bad encoding') wrong += 1
      else if (answer !== undefined) found += 1
      const context = `${method} ${path} in ${routes}`
      assert.deepEqual(answerOf(registry, method, path), answer, context)
      assert.deepEqual(registry.allowed(path), referenceAllowed(list, path), context)
    }
    registry.replaceApplication([])
    assert.equal(registry.find('GET', somePath(seeded, segments)), undefined)
  }
  assert.ok(found > 25 * count && wrong > count / 4, `${found} found, ${wrong} wrong`)
}

/** The result of the router. */
export function answerOf(registry: Registry<string>, method: string, path: string): Answer {
  try {
    const match = registry.find(method, path)
    return match === undefined ? undefined : { name: match.route.target, values: match.values }
  } catch (error) {
    assert.ok(error instanceof HttpError && error.code === 'bad_path_encoding')
    return 'bad encoding'
  }
}

function someMethods(seeded: Seeded): string {
  return seeded.pick(['GET', 'GET', 'POST', '*', 'HEAD', 'GET,POST', 'OPTIONS', 'PUT,GET'])
}

function somePattern(seeded: Seeded, literals: readonly string[]): string {
  const length = seeded.integer(5)
  const some = (index: number): string => {
    return seeded.integer(3) > 0 ? seeded.pick(literals) : seeded.pick([`:p${index}`, `:q${index}`])
  }
  const segments = Array.from({ length }, (_, index) => some(index))
  if (seeded.integer(4) === 0) segments.push('*r')
  return `/${segments.join('/')}`
}

function somePath(seeded: Seeded, segments: readonly string[]): string {
  const parts = Array.from({ length: seeded.integer(6) }, () => seeded.pick(segments))
  return `/${parts.join('/')}${seeded.pick(['', '', '/'])}`
}
