import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { PassThrough, type Readable } from 'node:stream'
import { describe, it, mock } from 'node:test'
import { PipeTarget, readLogPipe } from '../../lib/cluster/log-pipe.ts'
import { Appender } from '../../lib/log/appender.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

/** Returns what a worker writes for these batches of lines. */
function written(batches: readonly string[]): Buffer {
  const file = join(temporaryFolder(), 'pipe')
  const fd = openSync(file, 'a')
  const target = new PipeTarget(fd, 'svc.log')
  for (const batch of batches) {
    const bytes = Buffer.from(`..${batch}`)
    assert.equal(target.write(bytes, 2), bytes.length - 2)
  }
  closeSync(fd)
  return readFileSync(file)
}

async function read(chunks: readonly Buffer[]): Promise<string[]> {
  const pipe = new PassThrough()
  const taken: string[] = []
  const ended = readLogPipe(pipe, (lines) => taken.push(lines))
  for (const chunk of chunks) {
    if (!pipe.write(chunk)) await once(pipe, 'drain')
  }
  pipe.end()
  await ended
  return taken
}

describe('a log pipe', () => {
  it('passes on lines unchanged for any chunks, each with its continuation lines', async () => {
    const seeded = new Seeded(8)
    for (let round = 0; round < 50; round += 1) {
      const batches = Array.from({ length: 1 + seeded.integer(6) }, (_, at) => {
        return `line ${at} é ${'x'.repeat(seeded.integer(3000))}\n    at a stack\n    at another place\n`
      })
      const bytes = written(batches)
      const chunks: Buffer[] = []
      for (let at = 0; at < bytes.length; ) {
        const size = 1 + seeded.integer(round % 2 === 0 ? 7 : 5000)
        const isEnd = bytes[at + size - 1] === 10 // A stack that is cut there is taken in two pieces.
        chunks.push(bytes.subarray(at, at + (isEnd ? size - 1 : size)))
        at += isEnd ? size - 1 : size
      }
      const taken = await read(chunks)
      assert.equal(taken.join(''), batches.join(''))
      for (const lines of taken) assert.match(lines, /^line .* at another place\n$/s)
    }
  })

  it('passes on the complete lines of a batch when its writer is killed', async () => {
    const bytes = written(['first\n', 'second\nthird\n'])
    const rows: readonly (readonly [cut: number, taken: string])[] = [
      [0, 'first\nsecond\nthird\n'],
      [1, 'first\nsecond\n'],
      [6, 'first\nsecond\n'],
      [7, 'first\n'],
      [13, 'first\n'],
      [15, ''],
    ]
    for (const [cut, taken] of rows) {
      assert.equal((await read([bytes.subarray(0, bytes.length - cut)])).join(''), taken, `cut ${cut}`)
    }
  })

  it('accepts a line of 20 MB', async () => {
    const line = `${'x'.repeat(20 * 2 ** 20)}\n`
    assert.ok((await read([written([line, 'short\n'])])).join('') === `${line}short\n`)
  })

  it('accepts the output of an appender', async () => {
    const file = join(temporaryFolder(), 'pipe')
    const fd = openSync(file, 'a')
    const target = new PipeTarget(fd, 'svc.log')
    const appender = new Appender(target, { report: () => {}, alert: assert.fail, now: () => 0 })
    const lines = Array.from({ length: 2000 }, (_, at) => `line ${at} ${'y'.repeat(100)}\n`)
    for (const line of lines) appender.append(line)
    appender.close()
    closeSync(fd)
    const taken = await read([readFileSync(file)])
    assert.equal(taken.join(''), lines.join(''))
    assert.deepEqual([appender.written, appender.lost], [2000, 0])
  })

  it('buffers up to a limit what the pipe does not accept, and sends it in order later', async () => {
    const { fd, reader, close } = fifo()
    const target = new PipeTarget(fd, 'svc.log')
    const lines = (at: number): Buffer => Buffer.from(`${at} ${'x'.repeat(100_000)}\n`)
    let count = 0
    assert.throws(() => {
      for (; count < 100; count += 1) target.write(lines(count), 0)
    }, { code: 'EAGAIN' })
    assert.ok(count > 40 && count < 44, `${count} of 100 KB each wait, where 4 MiB may`)
    const taken: string[] = []
    readLogPipe(reader, (text) => taken.push(...text.trimEnd().split('\n')))
    await until(() => taken.length === count)
    assert.deepEqual(taken.map((text) => parseInt(text, 10)), Array.from({ length: count }, (_, at) => at))
    target.write(Buffer.from('after\n'), 0)
    await until(() => taken.at(-1) === 'after')
    target.close()
    close()
  })

  it('waits at most a second for its reader when closed', () => {
    const { fd, close } = fifo()
    const target = new PipeTarget(fd, 'svc.log')
    target.write(Buffer.alloc(200_000, 'x'), 0)
    const said = mock.method(process.stderr, 'write', () => true)
    const begun = performance.now()
    target.close()
    said.mock.restore()
    assert.ok(performance.now() - begun > 900)
    assert.match(String(said.mock.calls[0]?.arguments[0]), /^The log svc.log: the primary process did not read the last \d+ bytes\n$/)
    close()
  })
})

/** A non-blocking named pipe. */
function fifo(): { readonly fd: number; readonly reader: Readable; readonly close: () => void } {
  const path = join(temporaryFolder(), 'fifo')
  execFileSync('mkfifo', [path])
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const reader = new Socket({ fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), readable: true, writable: false })
  return { fd, reader, close: () => (closeSync(fd), reader.destroy()) }
}
