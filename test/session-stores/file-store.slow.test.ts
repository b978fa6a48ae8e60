import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import * as promises from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { checkDamagedFiles, openFileStore } from './file-store-support.ts'

describe('a damaged session file', () => {
  it('never makes a read fail in 500 rounds, and never returns an invalid session', (t) => checkDamagedFiles(t, 500))
})

describe('a killed process', () => {
  it('leaves every session intact', async (t) => {
    const folder = join(temporaryFolder(), 'sessions')
    const program = fileURLToPath(new URL('write-sessions.ts', import.meta.url))
    for (let round = 0; round < 3; round++) {
      const child = spawn(process.execPath, [...process.execArgv.filter(isLoader), program, folder], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let lines = 0
      child.stdout.on('data', (text: Buffer) => (lines += text.toString().split('\n').length - 1))
      await until(() => lines > 20 + round * 7 || child.exitCode !== null)
      child.kill('SIGKILL')
      await once(child, 'close')
      assert.equal(child.signalCode, 'SIGKILL')

      const { store, problems } = openFileStore(t, promises, folder)
      const names = fs.readdirSync(folder).filter((name) => name.endsWith('.json'))
      assert.ok(names.length >= 10)
      for (const name of names) {
        const { version, fields } = JSON.parse(fs.readFileSync(join(folder, name), 'utf8')) as Record<string, unknown>
        assert.equal(version, 1)
        const values = new Map(fields as [string, string][])
        assert.equal(values.get('first'), values.get('last')) // both are written by each step
        assert.equal(values.get('filling')?.length, 20_000)
      }
      await store.sweep()
      assert.deepEqual(problems, [])
      assert.equal(fs.readdirSync(folder).filter((name) => name.endsWith('.json')).length, names.length)
    }
  })
})

/** Loads TypeScript if Node does not. */
function isLoader(argument: string, at: number, all: readonly string[]): boolean {
  return argument.startsWith('--import') || all[at - 1] === '--import'
}
