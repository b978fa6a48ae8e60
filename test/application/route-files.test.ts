import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
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
  assert.match(problems[0]?.error ?? '', /^the file cannot be read: ENOENT/)
})

const wrongFiles: readonly (readonly [text: string | Buffer, error: RegExp])[] = [
  ['', /^the file is empty: write \[\] for no routes$/],
  [' \n', /^the file is empty/],
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
  [Buffer.from([0x5b, 0xff, 0x5d]), /^the file is not UTF-8 text/],
  [Buffer.from('[]', 'utf16le'), /^it is not valid JSON at line 1, column 2/],
]

test('tells what is wrong with a file and where, with index null, and reads the others', () => {
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

test('tells what is wrong with a record, by its index, and keeps the others', () => {
  const folder = temporaryFolder()
  const least = { name: 'a', url: '/a', action: 'a.js' }
  const list = [least, { name: 'b', url: 'b' }, 7, { ...least, name: 'c', methods: 'GET' }]
  writeFileSync(join(folder, 'a.json'), `\ufeff${JSON.stringify(list)}`)
  const { files, problems, warnings } = readRouteFiles(folder, rules)
  assert.deepEqual(files[0]?.records.map(({ index, record }) => [index, record.name]), [[0, 'a'], [3, 'c']])
  assert.deepEqual(problems, [
    { file: 'a.json', index: 1, name: 'b', error: 'bad pattern "b" at position 1: a pattern begins with /' },
    { file: 'a.json', index: 1, name: 'b', error: 'action is missing' },
    { file: 'a.json', index: 2, name: '', error: 'a route record is a JSON object: it is 7' },
  ])
  assert.deepEqual(warnings, [
    {
      file: 'a.json',
      index: 3,
      name: 'c',
      error: 'field "methods" is not known and is ignored: did you mean "method"?',
    },
  ])
})

test('refuses a name that an earlier record has, and says where', () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'a.json'), records('bad/', 'x', 'y', 'x'))
  writeFileSync(join(folder, 'b.json'), records('y', 'z'))
  const { files, problems } = readRouteFiles(folder, rules)
  assert.deepEqual(files.map((file) => file.records.map(({ record }) => record.name)), [['bad/', 'x', 'y'], ['z']])
  assert.deepEqual(problems, [
    { file: 'a.json', index: 3, name: 'x', error: 'name "x" is taken by a.json, index 1: names are unique' },
    { file: 'b.json', index: 0, name: 'y', error: 'name "y" is taken by a.json, index 2: names are unique' },
  ])
})

test('neither an empty folder nor one that is not there is a problem, but the latter is told', () => {
  const folder = temporaryFolder()
  assert.deepEqual(readRouteFiles(folder, rules), { missing: false, files: [], problems: [], warnings: [] })
  const gone = readRouteFiles(join(folder, 'gone'), rules)
  assert.deepEqual(gone, { missing: true, files: [], problems: [], warnings: [] })
})

function records(...names: string[]): string {
  return JSON.stringify(names.map((name) => ({ name, url: '/a', action: 'a.js' })))
}
