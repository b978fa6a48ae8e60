/** JSON: bodies, the configuration and its changes, session files, route records. */
import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { assembleConfig } from '../../../lib/config/assemble.ts'
import { editConfig } from '../../../lib/config/save.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { parseJson } from '../../../lib/http/json.ts'
import { explainJson, JsonError, mapJson } from '../../../lib/json/json-map.ts'
import { parsePattern } from '../../../lib/routing/pattern.ts'
import { parseRecord } from '../../../lib/application/record.ts'
import { problemOfFields } from '../../../lib/session/fields.ts'
import { fromFileText, toFileText } from '../../../lib/session-stores/session-file.ts'
import type { Seeded } from '../../support/seeded.ts'
import { changed, odd, pieces } from '../mutate.ts'
import type { Target } from '../target.ts'

const texts = ['a', 'b', 'name', 'url', 'admin', 'user', '__proto__', 'constructor', 'é', '😀', '\u2028', '\\u0000', '\\"', '', '/a/:id']
const scalars = ['0', '-1', '1e999', '1.5', 'true', 'false', 'null', '""', '[]', '{}', '9007199254740993']

/** A body: read as `JSON.parse` reads it, or refused with a place; the map of places agrees. */
export const bodies: Target = {
  name: 'json',
  share: 100,
  make: (seeded) => [seeded.integer(2) === 0 ? someJson(seeded, 0) : changed(seeded, someJson(seeded, 0), 1 + seeded.integer(3))],
  check([text = '']) {
    const expected = read(text)
    let value: unknown
    try {
      value = parseJson(text, explainJson)
      assert.ok(expected !== undefined, 'it was taken')
    } catch (error) {
      assert.ok(error instanceof HttpError && error.code === 'bad_json', String(error))
      assert.equal(expected, undefined)
      if (text !== '') assert.match(error.message, /: line \d+, column \d+: /)
    }
    if (expected !== undefined) assert.equal(JSON.stringify(value), JSON.stringify(expected.value))
    assert.equal(Object.getPrototypeOf({}), Object.prototype)
    checkMap(text, expected !== undefined)
  },
}

/** The text of a configuration, then a value for `admin.user`: it is read or named as wrong, and changed in place. */
export const configuration: Target = {
  name: 'config',
  share: 40,
  make: (seeded) => [seeded.integer(3) === 0 ? changed(seeded, someConfig(seeded), 2) : someConfig(seeded), pieces(seeded, [...odd, 'admin'], 3)],
  check([text = '', user = '']) {
    const before = read(text)
    if (before !== undefined) {
      const { config, problems } = assembleConfig([before.value], {})
      assert.ok(Object.isFrozen(config))
      for (const problem of problems) assert.ok(problem.text.length > 0)
    }
    let edited: string
    try {
      edited = editConfig(text, { 'admin.user': user })
    } catch (error) {
      assert.ok(error instanceof Error && error.constructor !== TypeError, String(error))
      return
    }
    assert.equal(assembleConfig([JSON.parse(edited)], {}).config['admin.user'], user)
    assert.equal(editConfig(edited, { 'admin.user': user }), edited)
    const rest = (json: string): string => JSON.stringify(withoutUser(JSON.parse(json)))
    assert.equal(rest(edited), rest(text))
  },
}

/** The text of a session file. */
export const sessions: Target = {
  name: 'session-files',
  share: 60,
  make(seeded) {
    const fields = new Map(Array.from({ length: seeded.integer(4) }, () => [`key:${seeded.pick(texts)}`, someJson(seeded, 2)]))
    const text = Buffer.from(toFileText(fields)).toString('latin1')
    return [seeded.integer(3) === 0 ? text : changed(seeded, text, 1 + seeded.integer(3))]
  },
  check([text = '']) {
    const fields = fromFileText(Buffer.from(text, 'latin1'))
    if (typeof fields === 'string') return assert.ok(fields.startsWith('it'))
    assert.deepEqual(fromFileText(Buffer.from(toFileText(fields))), fields)
    const problem = problemOfFields(fields)
    if (problem !== undefined) assert.ok(problem.startsWith('it has'))
  },
}

const root = '/srv/app'
const actions = ['a.js', 'b/c.mjs@d', 'v.html', '../x.js', '/etc/passwd', 'a/../../b.js', './a.js', 'a//b.js', 'a\\..\\b.js', '..', '.', 'x.js@']
const fields = ['name', 'url', 'pattern', 'action', 'method', 'middleware', 'scope', '__proto__', 'methods', 'constructor']

/** A route record as JSON. */
export const records: Target = {
  name: 'records',
  share: 60,
  make(seeded) {
    const record: Record<string, unknown> = { name: 'n', url: '/a', action: 'a.js' }
    for (let left = seeded.integer(5); left > 0; left -= 1) {
      const value = seeded.integer(3) === 0 ? read(someJson(seeded, 2))?.value : pieces(seeded, [...actions, ...texts, ...odd, 'svc.', '/', 'GET', '*'], 3)
      Object.defineProperty(record, seeded.pick(fields), { value, enumerable: true, configurable: true, writable: true })
    }
    if (seeded.integer(2) === 0) record['action'] = changed(seeded, seeded.pick(actions), seeded.integer(3))
    return [JSON.stringify(record)]
  },
  check([text = '']) {
    const parsed = parseRecord(read(text)?.value, { root, middlewareKnown: (name) => name === 'known' })
    if ('problems' in parsed) return assert.ok(parsed.problems.length > 0)
    const { record } = parsed
    assert.ok(record.name !== '' && !record.name.startsWith('svc.'))
    assert.deepEqual(parsePattern(record.url), parsed.pattern)
    for (const file of [record.action, record.action.replace(/(\.[cm]?[jt]s)@[^@]*$/, '$1')]) {
      assert.ok(resolve(root, file).startsWith(`${root}/`), record.action)
    }
    assert.match(record.method, /^[A-Z0-9!#$%&'*+\-.^_`|~]+(,[A-Z0-9!#$%&'*+\-.^_`|~]+)*$/)
    assert.match(record.middleware, /^(known(,known)*)?$/)
    assert.equal(typeof record.scope, 'string')
  },
}

function read(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** The map of places refuses a text that is not JSON, a name that appears twice and too deep nesting, and nothing else. */
function checkMap(text: string, isJson: boolean): void {
  try {
    mapJson(text)
    assert.ok(isJson || text.startsWith('\ufeff'))
  } catch (error) {
    assert.ok(error instanceof JsonError, String(error))
    assert.match(error.message, /^line \d+, column \d+: /)
    if (isJson) assert.match(error.message, /appears twice|nested deeper/)
  }
}

function withoutUser(value: unknown): unknown {
  const { 'admin.user': _, admin, ...rest } = value as Record<string, unknown>
  if (typeof admin !== 'object' || admin === null || Array.isArray(admin)) return { ...rest, admin }
  const { user: __, ...members } = admin as Record<string, unknown>
  return Object.keys(members).length === 0 ? rest : { ...rest, admin: members }
}

function someJson(seeded: Seeded, depth: number): string {
  if (depth > 3 || seeded.integer(3) === 0) return seeded.pick([...scalars, `"${seeded.pick(texts)}"`])
  const list = (item: () => string): string => Array.from({ length: seeded.integer(4) }, item).join(seeded.pick([',', ', ', ',\n']))
  if (seeded.integer(2) === 0) return `[${list(() => someJson(seeded, depth + 1))}]`
  return `{${list(() => `"${seeded.pick(texts)}":${someJson(seeded, depth + 1)}`)}}`
}

function someConfig(seeded: Seeded): string {
  const members = [
    '"admin": {"user": "x", "enabled": true}', '"admin": {}', '"admin.user": "y"', '"admin.secret": "s"', '"app": {"env": "dev"}', '"app.env": "prod"',
    '"server": {"port": 1, "host": "h"}', '"server.port": "no"', '"log": {"level": "warn", "max_files": -1}', '"trace": {"app": false}',
    '"unknown": 1', '"__proto__": {"admin": {"user": "z"}}', '"constructor": {"prototype": {"x": 1}}', '"admin": 5', `"x": ${someJson(seeded, 2)}`,
  ]
  const chosen = Array.from({ length: seeded.integer(5) }, () => seeded.pick(members))
  return `{${seeded.pick(['', '\n  '])}${chosen.join(seeded.pick([',', ',\n  ']))}${seeded.pick(['', '\n'])}}`
}
