import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readChanges } from '../../lib/log/changes.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const line = (message: string, module = 'server', level = 'INFO '): string =>
  `[2026-11-24 10:00:00.123] [${level}] [${module}] ${message}\n`

test('reads the last changes, the newest first, from this file and those before it', async () => {
  const folder = temporaryFolder()
  const write = (name: string, ...lines: string[]): void => writeFileSync(join(folder, name), lines.join(''))
  write('svc_20261124090000_000009.log', line('stop asked for by ::1'), line('route "a" added by 10.0.0.1: {}'))
  write('svc_20261124100000_000010.log', line('SIGTERM: stopping'), '    at by 1.1.1.1 (a:1:1)\n')
  write(
    'svc.log',
    line('listening on http://127.0.0.1:1'),
    line('cache cleared by 127.0.0.1: 3 files'),
    line('sold by 127.0.0.1: 3', 'app'),
    line('reload by 127.0.0.1 refused: x', 'server', 'WARN '),
    line('trace of app went back to on by itself'),
  )
  const read = async (most: number) => (await readChanges(folder, 'svc.log', most)).map(({ message }) => message)
  const all = [
    'reload by 127.0.0.1 refused: x', 'cache cleared by 127.0.0.1: 3 files', 'SIGTERM: stopping',
    'route "a" added by 10.0.0.1: {}', 'stop asked for by ::1',
  ]
  assert.deepEqual(await read(10), all)
  assert.deepEqual(await read(4), all.slice(0, 4))
  assert.deepEqual((await readChanges(folder, 'svc.log', 1))[0]?.time, '2026-11-24 10:00:00.123')
})

test('reads a log of JSON', async () => {
  const folder = temporaryFolder()
  const time = '2026-11-24T10:00:00.123+01:00'
  const record = { time, level: 'info', module: 'server', message: 'routes reloaded by ::1: 1' }
  const lines = [record, { ...record, module: 'app' }].map((each) => JSON.stringify(each))
  writeFileSync(join(folder, 'svc.log'), `${lines.join('\n')}\n{"module":"server","mess`)
  const found = await readChanges(folder, 'svc.log', 10)
  assert.deepEqual(found, [{ time: '2026-11-24 10:00:00.123+01:00', message: record.message }])
})

test('finds a line wherever it begins in a long file, and stops at a file without lines', async () => {
  const folder = temporaryFolder()
  const many = Array.from({ length: 20_000 }, (_, at) => line(`${'x'.repeat(at % 97)} by 10.0.0.1 ${at}`))
  writeFileSync(join(folder, 'svc.log'), many.join(''))
  const found = await readChanges(folder, 'svc.log', 30_000)
  assert.deepEqual(found.map(({ message }) => Number(message.split(' ').at(-1))), many.map((_, at) => 19_999 - at))
  writeFileSync(join(folder, 'svc.log'), 'x'.repeat(2 ** 23))
  assert.deepEqual(await readChanges(folder, 'svc.log', 10), [])
})

test('waits for no pipe, and needs no file', async () => {
  const folder = temporaryFolder()
  assert.deepEqual(await readChanges(folder, 'svc.log', 10), [])
  execFileSync('mkfifo', [join(folder, 'svc.log')])
  assert.deepEqual(await readChanges(folder, 'svc.log', 10), [])
})
