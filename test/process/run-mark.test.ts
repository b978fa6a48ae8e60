import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname, uptime } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { monotonicMs, RunMark } from '../../lib/process/run-mark.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const run = { pid: process.pid, host: hostname(), startedAtMs: Date.now() }
const ended = { ...run, pid: 2 ** 22 + 1 } // Above every process id of Linux.

describe('the mark of a run', () => {
  it('exists from the start to the end of a run', () => {
    const folder = join(temporaryFolder(), 'cache')
    const mark = new RunMark(folder)
    assert.equal(mark.takeLast(), undefined)
    mark.begin()
    assert.deepEqual(Object.keys(JSON.parse(readFileSync(join(folder, 'running'), 'utf8')) as object), Object.keys(run))
    mark.end()
    assert.equal(existsSync(join(folder, 'running')), false)
    assert.equal(new RunMark(folder).takeLast(), undefined)
  })

  it('that was left behind is reported once, with process and time', () => {
    const folder = temporaryFolder()
    for (const left of [ended, { ...ended, pid: process.pid }, { ...run, pid: process.ppid, startedAtMs: Date.now() - uptime() * 1000 - 60_000 }]) {
      writeFileSync(join(folder, 'running'), JSON.stringify(left))
      const since = new Date(left.startedAtMs).toISOString()
      assert.match(new RunMark(folder).takeLast() ?? '', new RegExp(`^the last run, process ${left.pid} since ${since}, did not stop cleanly: `))
      assert.equal(new RunMark(folder).takeLast(), undefined)
    }
  })

  it('of a running server, or of another machine, is kept, and no other server takes it', () => {
    const folder = temporaryFolder()
    for (const other of [{ ...run, pid: process.ppid }, { ...ended, host: 'another' }]) {
      writeFileSync(join(folder, 'running'), JSON.stringify(other))
      const mark = new RunMark(folder)
      assert.equal(mark.takeLast(), undefined)
      mark.begin()
      mark.end()
      assert.deepEqual(JSON.parse(readFileSync(join(folder, 'running'), 'utf8')), other)
    }
  })

  it('is ignored if damaged, whichever byte differs', () => {
    const folder = temporaryFolder()
    const text = JSON.stringify(ended)
    for (let at = 0; at < text.length; at += 1) {
      for (const sign of ['', '\0', '9', '"', '}']) {
        writeFileSync(join(folder, 'running'), text.slice(0, at) + sign + text.slice(at + 1))
        assert.doesNotThrow(() => new RunMark(folder).takeLast())
      }
    }
    for (const wrong of ['', 'null', '[]', '{"pid":-1,"host":"a","startedAtMs":1}', `{"pid":1,"host":"${hostname()}","startedAtMs":1e300}`]) {
      writeFileSync(join(folder, 'running'), wrong)
      assert.equal(new RunMark(folder).takeLast(), undefined, wrong)
    }
  })

  it('is not written if the folder is not writable', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'file'), '')
    const mark = new RunMark(join(folder, 'file'))
    assert.equal(mark.takeLast(), undefined)
    mark.begin()
    mark.end()
  })
})

describe('the outcome of a reload', () => {
  it('is that of a reload of the process which began since a time, and of no other', () => {
    const mark = new RunMark(temporaryFolder())
    const begunAtMs = monotonicMs()
    assert.equal(mark.reportSince(0, process.pid), undefined)
    mark.reportReload(begunAtMs, ['a', 'b'])
    assert.deepEqual(mark.reportSince(begunAtMs, process.pid), ['a', 'b'])
    assert.equal(mark.reportSince(begunAtMs + 1, process.pid), undefined, 'one that was under way')
    assert.equal(mark.reportSince(begunAtMs, process.ppid), undefined, 'one of another process')
    mark.dropReport()
    assert.equal(mark.reportSince(0, process.pid), undefined)
    mark.dropReport()
  })

  it('is none if its file is damaged', () => {
    const folder = temporaryFolder()
    for (const wrong of ['', '{', 'null', '[]', `{"pid":${process.pid}}`, `{"pid":${process.pid},"begunAtMs":"x","problems":[]}`, `{"pid":${process.pid},"begunAtMs":9,"problems":{}}`]) {
      writeFileSync(join(folder, 'reloaded'), wrong)
      assert.equal(new RunMark(folder).reportSince(0, process.pid), undefined, wrong)
    }
  })
})
