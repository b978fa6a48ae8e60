import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { LastState, lastStateFile, readLastState, removeLastState, stateOf, textOfState } from '../../lib/process/last-state.ts'
import { RunningRequests } from '../../lib/process/running-requests.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const megabyte = 2 ** 20

describe('the running requests', () => {
  it('are read by another instance with the same memory until they end', () => {
    const running = new RunningRequests()
    const other = new RunningRequests(running.memory)
    assert.deepEqual(other.read(), { named: [], unnamed: 0 })
    const first = running.began({ method: 'GET', path: '/a' })
    const second = running.began({ method: 'POST', path: '/b/c' })
    assert.deepEqual(other.read(), { named: ['GET /a', 'POST /b/c'], unnamed: 0 })
    running.ended(first)
    assert.deepEqual(other.read(), { named: ['POST /b/c'], unnamed: 0 })
    running.ended(second)
    assert.deepEqual(other.read(), { named: [], unnamed: 0 })
  })

  it('beyond those that are named are counted, and a long path is cut', () => {
    const running = new RunningRequests()
    const slots = Array.from({ length: 1000 }, (_, at) => running.began({ method: 'GET', path: `/${at}${'x'.repeat(500)}` }))
    const { named, unnamed } = running.read()
    assert.equal(named.length + unnamed, 1000)
    assert.ok(named.length >= 100)
    for (const text of named) assert.match(text, /^GET \/\d+x{100,}$/)
    for (const slot of slots) running.ended(slot)
    assert.deepEqual(running.read(), { named: [], unnamed: 0 })
    running.began({ method: 'GET', path: '/again' })
    assert.deepEqual(running.read().named, ['GET /again'])
  })
})

describe('the state of a process', () => {
  it('is a text with memory and requests', () => {
    const rows = [
      [{ memory: 512 * megabyte, requests: [], others: 0 }, '512 MiB of memory; no running request'],
      [{ memory: 0, requests: ['GET /a'], others: 0 }, 'running: GET /a'],
      [{ memory: megabyte, requests: ['GET /a', 'PUT /b'], others: 1 }, '1 MiB of memory; running: GET /a, PUT /b and 1 other'],
      [{ memory: megabyte, requests: ['GET /a'], others: 12 }, '1 MiB of memory; running: GET /a and 12 others'],
    ] as const
    for (const [state, text] of rows) assert.equal(textOfState(state), text)
  })

  it('names some of the requests and counts the others', () => {
    const running = new RunningRequests()
    for (let at = 0; at < 300; at += 1) running.began({ method: 'GET', path: `/${at}` })
    const { memory, requests, others } = stateOf(running)
    assert.ok(memory > megabyte)
    assert.equal(requests.length + others, 300)
    assert.ok(requests.length < 20)
  })

  it('is in its file after each change, for the process that wrote it, and gone after a clean stop', () => {
    const file = lastStateFile(join(temporaryFolder(), 'new'), 3)
    const state = new LastState(file)
    state.write({ memory: 64 * megabyte, requests: ['GET /a', 'GET /b'], others: 2 })
    assert.equal(readLastState(file, process.pid), '64 MiB of memory; running: GET /a, GET /b and 2 others')
    state.write({ memory: 64 * megabyte, requests: [`GET /${'\u00ff"'.repeat(120)}`], others: 0 })
    assert.match(readLastState(file, process.pid) ?? '', /^64 MiB of memory; running: GET \/(\u00ff"){120}$/)
    assert.equal(readLastState(file, process.pid + 1), undefined)
    assert.equal(new LastState(file) instanceof LastState && readLastState(file, process.pid), undefined)
    removeLastState(file)
    assert.equal(existsSync(file), false)
    removeLastState(file)
  })

  it('fits into its file with the longest requests', () => {
    const file = lastStateFile(temporaryFolder())
    const running = new RunningRequests()
    for (let at = 0; at < 20; at += 1) running.began({ method: 'OPTIONS', path: `/${'"'.repeat(1000)}` })
    new LastState(file).write(stateOf(running))
    assert.match(readLastState(file, process.pid) ?? '', /OPTIONS .* and 12 others$/)
  })

  it('is unknown where the folder cannot be written or the file is damaged', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'file'), '')
    new LastState(join(folder, 'file', 'last-state')).write({ memory: 1, requests: [], others: 0 })
    const file = lastStateFile(temporaryFolder())
    new LastState(file).write({ memory: 64 * megabyte, requests: ['GET /a'], others: 0 })
    const text = readFileSync(file, 'utf8').trimEnd()
    for (let at = 0; at < text.length; at += 1) {
      for (const sign of ['', '\0', '9', '"', '}']) {
        writeFileSync(file, text.slice(0, at) + sign + text.slice(at + 1))
        assert.doesNotThrow(() => readLastState(file, process.pid))
      }
    }
    for (const wrong of ['', '[]', 'null', `{"pid":${process.pid}}`, `{"pid":${process.pid},"memory":1,"requests":1,"others":1}`]) {
      writeFileSync(file, wrong)
      assert.equal(readLastState(file, process.pid), undefined, wrong)
    }
  })
})
