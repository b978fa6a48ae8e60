import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { initialState } from '../../lib/control/desired-state.ts'
import { UsedCodesFile } from '../../lib/control/used-codes-file.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const codes = { secret: { step: 5, recovery: ['hash'] } }

function make() {
  const folder = join(temporaryFolder(), 'cache')
  const problems: string[] = []
  return { folder, path: join(folder, 'totp-used'), problems, file: new UsedCodesFile(folder, (text) => problems.push(text)) }
}

test('keeps used codes for the next start, only for its owner', () => {
  const { file, folder, path, problems } = make()
  assert.deepEqual(file.read(), {})
  file.write(codes)
  assert.deepEqual(file.read(), codes)
  assert.deepEqual(new UsedCodesFile(folder, () => {}).read(), codes)
  assert.deepEqual([statSync(path).mode & 0o777, statSync(folder).mode & 0o777], [0o600, 0o700])
  assert.deepEqual([problems, file.warnings(), readdirSync(folder)], [[], [], ['totp-used']])
})

test('writes when a state has other used codes than the one before', () => {
  const { file, path } = make()
  const state = { ...initialState, usedCodes: codes }
  file.follow(initialState, initialState)
  assert.throws(() => statSync(path), { code: 'ENOENT' })
  file.follow(initialState, state)
  rmSync(path)
  file.follow(state, structuredClone(state))
  assert.throws(() => statSync(path), { code: 'ENOENT' })
})

test('an unreadable or damaged file counts as none, and is reported', () => {
  const { file, folder, path, problems } = make()
  mkdirSync(folder)
  for (const text of ['', '{', '[]', '{"a": 1}', '\0']) {
    writeFileSync(path, text)
    assert.deepEqual(file.read(), {}, text)
  }
  const [problem = ''] = problems
  assert.match(problem, /^cannot read .*totp-used \(.*\): a code that was used before the start is good again$/)
  assert.deepEqual([problems.length, file.warnings().length], [1, 1])
  file.write(codes)
  assert.deepEqual([JSON.parse(readFileSync(path, 'utf8')), file.warnings()], [codes, []])
})

test('reports once that it cannot be written, until it can', () => {
  const { file, folder, problems } = make()
  writeFileSync(folder, 'a file')
  for (let time = 0; time < 3; time += 1) file.write(codes)
  const [problem = ''] = problems
  assert.match(problem, /^cannot save .*totp-used \(.*\): a used code of the second factor is good again if the server/)
  assert.deepEqual([problems.length, file.warnings()], [1, [problem]])
  rmSync(folder)
  file.write(codes)
  assert.deepEqual(file.warnings(), [])
})
