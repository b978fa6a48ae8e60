/** Patterns and paths: the router against the plain rules of `test/routing/reference-matcher.ts`, and static paths. */
import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { HttpError } from '../../../lib/http/errors.ts'
import { staticPath } from '../../../lib/static/static-path.ts'
import { buildPath, parsePattern, PatternError, type Pattern } from '../../../lib/routing/pattern.ts'
import { Registry } from '../../../lib/routing/registry.ts'
import type { Route } from '../../../lib/routing/route.ts'
import type { Seeded } from '../../support/seeded.ts'
import { referenceFind } from '../../routing/reference-matcher.ts'
import { route } from '../../routing/routes.ts'
import { changed, odd, pieces } from '../mutate.ts'
import type { Target } from '../target.ts'

const segments = ['a', 'b', 'ab', '%61', 'é', '%C3%A9', '%2F', '%25', 'a%2', '1', '.a', 'a.b', '~', 'A', '']
const parameters = [':x', ':y', ':z', '*r', ':x_1']
const methods = ['GET', 'POST', '*', 'GET,POST', 'HEAD', 'OPTIONS']

/** Routes are added (`+GET /a`), taken out again (`-0`), and asked for (`?GET /a`). */
export const router: Target = {
  name: 'router',
  share: 200,
  make(seeded) {
    const lines = Array.from({ length: 1 + seeded.integer(6) }, () => `+${seeded.pick(methods)} ${somePattern(seeded)}`)
    for (let left = 1 + seeded.integer(6); left > 0; left -= 1) {
      if (seeded.integer(8) === 0) lines.push(`-${seeded.integer(lines.length)}`)
      else lines.push(`?${seeded.pick(['GET', 'HEAD', 'POST', 'OPTIONS', 'X'])} ${somePath(seeded)}`)
    }
    return lines
  },
  check(lines) {
    const registry = new Registry<string>()
    const routes: Route<string>[] = []
    for (const [at, line] of lines.entries()) {
      const text = line.slice(1)
      if (line.startsWith('+')) {
        const made = routeOf(text, `r${at}`)
        if (made === undefined) continue
        registry.add(made)
        routes.push(made)
      } else if (line.startsWith('-')) {
        routes.splice(Number(text), 1)
        registry.replaceApplication(routes)
      } else {
        const space = text.indexOf(' ')
        compareWithModel(registry, routes, text.slice(0, space), text.slice(space + 1))
      }
    }
  },
}

/** A pattern, then a value for each of its parameters: the path that is built leads back to the values. */
export const patterns: Target = {
  name: 'patterns',
  share: 100,
  make(seeded) {
    const text = seeded.integer(3) === 0 ? changed(seeded, somePattern(seeded), 2) : somePattern(seeded)
    return [text, ...Array.from({ length: 3 }, () => pieces(seeded, [...segments, ...odd, '😀', '\ud800'], 4))]
  },
  check([text = '', ...values]) {
    const pattern = patternOf(text)
    if (pattern === undefined) return
    const params = Object.fromEntries(pattern.names.map((name, at) => [name, values[at] ?? 'x']))
    let path: string
    try {
      path = buildPath(pattern, params)
    } catch (error) {
      assert.ok(error instanceof TypeError && error.message.startsWith('Cannot build the path'), String(error))
      return
    }
    assert.match(path, /^\/[\w\-.~!$&'()*+,;=:@%/]*$/)
    const registry = new Registry<string>()
    registry.add({ ...route('GET /', 'r'), pattern })
    // A rest that is empty at its end, or ends with a slash, is found as it was built.
    assert.deepEqual(registry.find('GET', path)?.values, pattern.names.map((name) => params[name]))
  },
}

/** Paths of files: what comes out is below the folder, decoded once, with nothing hidden on its way. */
export const files: Target = {
  name: 'files',
  share: 100,
  make: (seeded) => [`/${pieces(seeded, [...segments, ...odd, '%5c', '..%2f', '%252e%252e', '%c0%af', '/.well-known/'], 8)}`],
  check([path = '']) {
    if (!path.startsWith('/')) return
    let served: string | undefined
    try {
      served = staticPath(path)
    } catch (error) {
      assert.ok(error instanceof HttpError && error.status === 400, String(error))
      return
    }
    if (served === undefined) return
    assert.equal(served, decodeURIComponent(path))
    assert.equal(resolve(`/folder${served}`), `/folder${served.replace(/\/$/, '')}`)
    assert.doesNotMatch(served.replace(/^\/\.well-known\//, '/'), /\0|\\|\/\/|\/\./)
  },
}

function somePattern(seeded: Seeded): string {
  const count = seeded.integer(5)
  return `/${Array.from({ length: count }, () => seeded.pick(seeded.integer(3) === 0 ? parameters : segments)).join('/')}`
}

function somePath(seeded: Seeded): string {
  const path = `/${Array.from({ length: seeded.integer(6) }, () => seeded.pick(segments)).join('/')}`
  return seeded.integer(4) === 0 ? changed(seeded, path, 1) : path
}

function patternOf(text: string): Pattern | undefined {
  try {
    return parsePattern(text)
  } catch (error) {
    assert.ok(error instanceof PatternError, String(error))
    return undefined
  }
}

function routeOf(text: string, name: string): Route<string> | undefined {
  const space = text.indexOf(' ')
  const pattern = patternOf(text.slice(space + 1))
  if (pattern === undefined || space < 1) return undefined
  const record = { name, url: pattern.text, action: 'a.js', method: text.slice(0, space), middleware: '', scope: '' }
  return { record, pattern, system: false, target: name }
}

function compareWithModel(registry: Registry<string>, routes: readonly Route<string>[], method: string, path: string): void {
  if (!path.startsWith('/')) return
  const expected = referenceFind(routes, method, path)
  try {
    const found = registry.find(method, path)
    const answer = found === undefined ? undefined : { name: found.route.record.name, values: [...found.values] }
    assert.deepEqual(answer, expected)
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    assert.deepEqual([error.status, expected], [400, 'bad encoding'])
  }
}
