import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, test } from 'node:test'
import { readRouteFiles } from '../../lib/application/route-files.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const rules = { root: '/srv/app', middlewareKnown: () => false }

test('reads every *.json directly in the folder, in name order', () => {
  const folder = temporaryFolder()
  for (const file of ['b.json', 'a.json', 'B.json', '10.json', '2.json', 'é.json']) {
    writeFileSync(join(folder, file), records(file))
  }
  for (const file of ['.hidden.json', 'c.json.bak', 'd.JSON', 'e.txt', 'json']) writeFileSync(join(folder, file), '[')
  mkdirSync(join(folder, 'folder.json'))
  mkdirSync(join(folder, 'below'))
  writeFileSync(join(folder, 'below', 'x.json'), '[')
  const { files, problems, warnings } = readRouteFiles(folder, rules)
  assert.deepEqual(files.map(({ file }) => file), ['10.json', '2.json', 'B.json', 'a.json', 'b.json', 'é.json'])
  assert.deepEqual(files.map((file) => file.records.map(({ record }) => record.name)), files.map(({ file }) => [file]))
  assert.deepEqual([problems, warnings], [[], []])
})

test('follows a link to a file', () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'data'), records('linked'))
  symlinkSync('data', join(folder, 'a.json'))
  symlinkSync('nowhere', join(folder, 'b.json'))
  const { files, problems } = readRouteFiles(folder, rules)
  assert.equal(files[0]?.records[0]?.record.name, 'linked')
  assert.deepEqual(problems.map(({ file, index, name }) => [file, index, name]), [['b.json', null, '']])
  assert.match(problems[0]?.error ?? '', /^there is no such file$/)
})

const wrongFiles: readonly (readonly [text: string | Buffer, error: RegExp])[] = [
  ['', /^it is empty: write \[\] for no routes$/],
  [' \n', /^it is empty/],
  ['{}', /^a route file is a JSON array of route records/],
  ['null', /^a route file is a JSON array/],
  ['"[]"', /^a route file is a JSON array/],
  ['[\n  {"name": "a",}\n]', /^it is not valid JSON at line 2, column 1[45]: /],
  ['[\n\n{"name": a}]', /^it is not valid JSON at line 3, column 10: /],
  ['[{"name": "a",\n "name": "b"}]', /^it is not valid JSON at line 2, column 2: .*twice/],
  ['[1, 2', /^it is not valid JSON at line 1, column 6: /],
  ['[] []', /^it is not valid JSON at line 1, column 4: /],
  ['[\r\n{"a": "\u0001"}]', /^it is not valid JSON at line 2, column 8: /],
  ['['.repeat(10_000), /^it is not valid JSON at line 1, column 10[12]: /],
  [Buffer.from([0x5b, 0xff, 0x5d]), /^it is not UTF-8$/],
  [Buffer.from('[]', 'utf16le'), /^it is not valid JSON at line 1, column 2/],
]

test('reports the problem of a file and its position, with index null, and reads the others', () => {
  for (const [text, error] of wrongFiles) {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'a.json'), text)
    writeFileSync(join(folder, 'b.json'), records('b'))
    const { files, problems } = readRouteFiles(folder, rules)
    assert.deepEqual(files.map(({ file }) => file), ['b.json'])
    assert.equal(problems.length, 1)
    assert.deepEqual([problems[0]?.file, problems[0]?.index, problems[0]?.name], ['a.json', null, ''])
    assert.match(problems[0]?.error ?? '', error)
  }
})

test('reports the problems of a record, by its index, and keeps the others', () => {
  const folder = temporaryFolder()
  const least = { name: 'a', url: '/a', action: 'a.js' }
  const list = [least, { name: 'b', url: 'b' }, 7, { ...least, name: 'c', methods: 'GET' }]
  writeFileSync(join(folder, 'a.json'), `\ufeff${JSON.stringify(list)}`)
  const { files, problems, warnings } = readRouteFiles(folder, rules)
  assert.deepEqual(files[0]?.records.map(({ index, record }) => [index, record.name]), [[0, 'a'], [3, 'c']])
  assert.deepEqual(problems, [
    { file: 'a.json', index: 1, name: 'b', error: 'bad pattern "b" at position 1: a pattern begins with /', line: 1, column: 54 },
    { file: 'a.json', index: 1, name: 'b', error: 'action is missing', line: 1, column: 42 },
    { file: 'a.json', index: 2, name: '', error: 'a route record is a JSON object: it is 7', line: 1, column: 65 },
  ])
  assert.deepEqual(warnings, [
    {
      file: 'a.json',
      index: 3,
      name: 'c',
      error: 'field "methods" is not known and is ignored: did you mean "method"?',
      line: 1,
      column: 106,
    },
  ])
})

test('refuses the name of an earlier record, and reports its position', () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'a.json'), records('bad/', 'x', 'y', 'x'))
  writeFileSync(join(folder, 'b.json'), records('y', 'z'))
  const { files, problems } = readRouteFiles(folder, rules)
  assert.deepEqual(files.map((file) => file.records.map(({ record }) => record.name)), [['bad/', 'x', 'y'], ['z']])
  assert.deepEqual(problems, [
    { file: 'a.json', index: 3, name: 'x', error: 'name "x" is taken by a.json, index 1: names are unique', line: 1, column: 126 },
    { file: 'b.json', index: 0, name: 'y', error: 'name "y" is taken by a.json, index 2: names are unique', line: 1, column: 3 },
  ])
})

test('neither an empty folder nor a missing one is a problem, but the latter is reported', () => {
  const folder = temporaryFolder()
  for (const [path, isMissing] of [[folder, false], [join(folder, 'gone'), true]] as const) {
    const { missing, files, problems, warnings } = readRouteFiles(path, rules)
    assert.deepEqual([missing, files, problems, warnings], [isMissing, [], [], []])
  }
})

function records(...names: string[]): string {
  return JSON.stringify(names.map((name) => ({ name, url: '/a', action: 'a.js' })))
}

describe('a route file with defaults', () => {
  const read = (files: Readonly<Record<string, unknown>>) => {
    const folder = temporaryFolder()
    for (const [name, content] of Object.entries(files)) {
      writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content))
    }
    return readRouteFiles(folder, { root: '/srv/app', middlewareKnown: (name) => name !== 'unknown' })
  }
  const record = { name: 'a', url: '/a', action: 'a.js' }

  it('fills in the omitted fields of its records', () => {
    const defaults = { prefix: '/api/:tenant', middleware: 'one, two', scope: 's', method: 'GET', body_limit_kb: 5, error_format: 'json', deprecated: true, hidden: true }
    const own = { name: 'own', url: '/b', middleware: 'two,three', scope: 't', method: 'POST', body_limit_kb: 6, error_format: 'html', deprecated: false, hidden: false }
    const { files, formats, problems } = read({
      'a.json': {
        defaults,
        routes: [record, { ...record, name: 'root', url: undefined, pattern: '/' }, { ...record, ...own }, { ...record, name: 'none', defaults: false },
          { ...record, name: 'some', defaults: ['prefix', 'scope'] }, { ...record, name: 'no-list', defaults: [] }],
      },
    })
    assert.deepEqual(problems, [])
    const given = { method: 'GET', middleware: 'one,two', scope: 's', body_limit_kb: 5, error_format: 'json', deprecated: true, hidden: true }
    assert.deepEqual(files[0]?.records.map((one) => one.record), [
      { name: 'a', url: '/api/:tenant/a', action: 'a.js', ...given },
      { name: 'root', url: '/api/:tenant', action: 'a.js', ...given },
      { ...record, ...own, url: '/api/:tenant/b', middleware: 'one,two,three' },
      { ...record, name: 'none', method: '*', middleware: '', scope: '' },
      { ...record, name: 'some', url: '/api/:tenant/a', method: '*', middleware: '', scope: 's' },
      { ...record, name: 'no-list', method: '*', middleware: '', scope: '' },
    ])
    assert.deepEqual(formats.map(({ prefix, format }) => [prefix.text, format]), [['/api/:tenant', 'json']])
  })

  it('is refused as a whole if it has neither form or its defaults are invalid', () => {
    const rows: [unknown, RegExp][] = [
      [{}, /^a route file is a JSON array of route records, or an object \{"defaults": \{\.\.\.\}, "routes": \[\.\.\.\]\}$/],
      [{ routes: {} }, /^a route file is /],
      [{ routes: [], default: {} }, /^the file has an unknown member "default": did you mean "defaults"\?$/],
      [{ routes: [], $schema: 7 }, /^\$schema must be a string: it is 7$/],
      [{ routes: [], schema: 'a' }, /^the file has an unknown member "schema": did you mean "\$schema"\?$/],
      [{ routes: [], defaults: [] }, /^defaults must be an object$/],
      [{ routes: [], defaults: { prefx: '/a' } }, /^defaults has an unknown member "prefx": did you mean "prefix"\?$/],
      [{ routes: [], defaults: { summary: 'a' } }, /^defaults has an unknown member "summary"$/],
      [{ routes: [], defaults: { hidden: 1 } }, /^defaults: hidden must be true or false: it is 1$/],
      [{ routes: [], defaults: { name: 'a' } }, /^defaults has an unknown member "name"$/],
      ...['', 'api', '/', '/api/', 7].map((prefix): [unknown, RegExp] => [{ routes: [], defaults: { prefix } }, /^defaults: prefix must begin with \/ and not end with one/]),
      [{ routes: [], defaults: { prefix: '/a/*rest' } }, /^defaults: prefix must have no rest/],
      [{ routes: [], defaults: { prefix: '/:a/:a' } }, /^defaults: bad pattern/],
      [{ routes: [], defaults: { middleware: 'unknown' } }, /^defaults: middleware "unknown" is not known/],
      [{ routes: [], defaults: { method: 7 } }, /^defaults: method must be a string/],
      [{ routes: [], defaults: { body_limit_kb: 0 } }, /^defaults: body_limit_kb must be 1 to 1048576: it is 0$/],
      [{ routes: [], defaults: { error_format: 'xml' } }, /^defaults: error_format must be json, html or auto: it is "xml"$/],
    ]
    for (const [content, error] of rows) {
      const { problems, files } = read({ 'a.json': content })
      assert.deepEqual([problems.length, files.length, problems[0]?.index], [1, 0, null], JSON.stringify(content))
      assert.match(problems[0]?.error ?? '', error)
    }
  })

  it('with invalid defaults reports the problems of its records as well', () => {
    const routes = [{ url: '/q', action: 'a.mjs' }, { name: 'z', url: 'q', action: 'a.mjs' }, 4, { name: 'good', url: '/', action: 'a.mjs' }]
    const { problems, files } = read({ 'a.json': { defaults: { prefix: '/x', bog: 1 }, routes } })
    assert.deepEqual(problems.map(({ index, name }) => [index, name]), [[null, ''], [0, ''], [1, 'z'], [2, '']])
    assert.deepEqual(files, [])
  })

  it('reports the position of a mistake, in the record or in the defaults', () => {
    const text = `{
  "defaults": { "prefix": "/:id",
    "method": "GET" },
  "routes": [
    { "name": "a", "url": "/:id", "action": "a.js" },
    { "name": "b", "url": "/b",
      "body_limit_kb": "5", "action": "b.js" },
    { "name": "c", "url": "/c", "action": "c.js", "defaults": true }
  ]
}`
    const { problems } = read({ 'a.json': text })
    assert.deepEqual(problems.map(({ name, line, column }) => [name, line, column]), [['a', 5, 20], ['b', 7, 7], ['c', 8, 51]])
    assert.equal(problems[2]?.error, 'defaults must be false or a list of their names, or be left out')
  })
})
