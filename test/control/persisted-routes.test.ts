import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { RoutesUnsavedError } from '../../lib/control/commands.ts'
import { changeRouteFile, isPersisted, persistedFile } from '../../lib/control/persisted-routes.ts'
import type { RouteRecord } from '../../lib/routing/route.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

function record(name: string, url = `/${name}`): RouteRecord {
  return { name, url, action: 'a.mjs', method: '*', middleware: '', scope: '' }
}

test('the first record creates the file, the others are appended, one per line', () => {
  const folder = temporaryFolder()
  const file = join(folder, persistedFile)
  changeRouteFile(folder, { keep: record('a') })
  assert.equal(readFileSync(file, 'utf8'), `[\n  ${JSON.stringify(record('a'))}\n]\n`)
  changeRouteFile(folder, { keep: record('b') })
  assert.equal(
    readFileSync(file, 'utf8'),
    `[\n  ${JSON.stringify(record('a'))},\n  ${JSON.stringify(record('b'))}\n]\n`,
  )
  assert.deepEqual(readdirSync(folder), [persistedFile])
})

test('a record of the same name is replaced', () => {
  const folder = temporaryFolder()
  for (const url of ['/1', '/2', '/3']) changeRouteFile(folder, { keep: record('a', url) })
  assert.deepEqual(JSON.parse(readFileSync(join(folder, persistedFile), 'utf8')), [record('a', '/3')])
})

test('deleting removes the record', () => {
  const folder = temporaryFolder()
  changeRouteFile(folder, { forget: 'a' })
  assert.deepEqual(readdirSync(folder), [], 'no file is made for it')
  changeRouteFile(folder, { keep: record('a') })
  changeRouteFile(folder, { keep: record('b') })
  assert.deepEqual([isPersisted(folder, 'a'), isPersisted(folder, 'c')], [true, false])
  for (const name of ['a', 'b']) changeRouteFile(folder, { forget: name })
  assert.deepEqual(JSON.parse(readFileSync(join(folder, persistedFile), 'utf8')), [])
})

test('a change is undone, and changes made meanwhile stay', () => {
  const folder = temporaryFolder()
  const kept = (): unknown => JSON.parse(readFileSync(join(folder, persistedFile), 'utf8'))
  changeRouteFile(folder, { keep: record('a', '/1') })
  const undos = [{ keep: record('a', '/2') }, { forget: 'a' }].map((change) => {
    const undo = changeRouteFile(folder, change)
    changeRouteFile(folder, { keep: record('b') })
    return undo
  })
  for (const undo of undos.reverse()) undo()
  assert.deepEqual(kept(), [record('b'), record('a', '/1')])
})

test('a file is not touched if there is nothing to remove', () => {
  const folder = temporaryFolder()
  const file = join(folder, persistedFile)
  writeFileSync(file, ' [ ] ')
  const { ino } = statSync(file)
  changeRouteFile(folder, { forget: 'a' })
  assert.deepEqual([statSync(file).ino, readFileSync(file, 'utf8')], [ino, ' [ ] '])
})

test('everything else in the file is kept: other fields, invalid records, duplicate names', () => {
  const folder = temporaryFolder()
  const others = [5, null, 'a', { url: '/x' }, { name: 'b', note: 1 }, { name: 'b', note: 2 }]
  writeFileSync(join(folder, persistedFile), JSON.stringify([...others, { name: 'a' }, { name: 'a', x: 1 }]))
  changeRouteFile(folder, { keep: record('a') })
  assert.deepEqual(JSON.parse(readFileSync(join(folder, persistedFile), 'utf8')), [...others, record('a')])
})

const broken: readonly [text: string | Uint8Array, reason: RegExp][] = [
  ['', /it is empty: write \[\] for no routes$/],
  ['[', /it is not valid JSON/],
  ['{}', /it is not an array of route records: correct it or move it away/],
  ['null', /it is not an array/],
  [Uint8Array.of(0x5b, 0x22, 0xff, 0x22, 0x5d), /UTF-8|utf-8/],
]

test('a malformed file is refused and left unchanged', () => {
  for (const [text, reason] of broken) {
    const folder = temporaryFolder()
    const file = join(folder, persistedFile)
    writeFileSync(file, text)
    for (const change of [() => changeRouteFile(folder, { keep: record('a') }), () => changeRouteFile(folder, { forget: 'a' })]) {
      assert.throws(
        change,
        (error) => error instanceof RoutesUnsavedError && error.message.includes(file) && reason.test(error.message),
      )
    }
    assert.deepEqual(readFileSync(file), Buffer.from(text))
    assert.deepEqual(readdirSync(folder), [persistedFile])
  }
})

test('a file that cannot be read or written is reported', () => {
  const folder = temporaryFolder()
  const gone = join(folder, 'gone')
  assert.throws(
    () => changeRouteFile(gone, { keep: record('a') }),
    /^RoutesUnsavedError: Cannot save .*admin\.json: ENOENT.*the folder does not exist$/,
  )
  changeRouteFile(gone, { forget: 'a' })
  mkdirSync(join(folder, persistedFile))
  assert.throws(() => changeRouteFile(folder, { forget: 'a' }), /^RoutesUnsavedError: Cannot load .*admin\.json: it is not a regular file$/)
})
