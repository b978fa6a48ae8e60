import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, it, test } from 'node:test'
import { ConsoleLines, createProcessConsole } from '../../lib/log/console.ts'

const line = `${'x'.repeat(1023)}\n`

/** A console that the test reads. */
class HeldConsole {
  waitingBytes = 0
  printed = ''

  out(text: string): void {
    this.printed += text
    this.waitingBytes += text.length
  }

  error(): void {}
}

describe('a console that is not read', () => {
  it('gets at most 1 MiB; lines left out are counted', async () => {
    const port = new HeldConsole()
    const lines = new ConsoleLines(port)
    for (let count = 0; count < 5000; count += 1) {
      lines.append(line)
      if (count % 10 === 0) await nextTurn()
    }
    lines.flush()
    assert.ok(port.waitingBytes <= 2 ** 20, `${port.waitingBytes} bytes wait`)
    assert.ok(port.waitingBytes > 2 ** 19)
    const printed = port.printed.length / 1024
    assert.equal(lines.problem, `The console is not being read: left out ${5000 - printed} lines. The log file has them`)
  })

  it('keeps counting while it is not read, even if a short line would fit, and has no problem once it is read', () => {
    const port = new HeldConsole()
    const lines = new ConsoleLines(port)
    const log = (text: string): void => {
      lines.append(text)
      lines.flush()
    }
    port.waitingBytes = 2 ** 20 - 100
    log(line)
    for (let count = 0; count < 9; count += 1) log('short\n')
    assert.deepEqual([port.printed, lines.lost], ['', 10])
    assert.match(lines.problem ?? '', /left out 10 lines\./)
    port.waitingBytes = 2 ** 19 + 1
    log('short\n')
    assert.match(lines.problem ?? '', /left out 11 lines\./)
    port.waitingBytes = 2 ** 19 - 100
    assert.equal(lines.problem, undefined)
    log('back\n')
    assert.equal(port.printed, '... 11 lines left out: the console was not read\nback\n')
    assert.equal(lines.lost, 11)
  })

  it('has no problem after one text that is larger than the limit', () => {
    const port = new HeldConsole()
    const lines = new ConsoleLines(port)
    lines.append('x'.repeat(2 ** 20) + '\n')
    lines.append('next\n')
    lines.flush()
    assert.equal(port.printed, '... 1 line left out: the console was not read\nnext\n')
  })

  it('shows how much was left out once it is read again', () => {
    const port = new HeldConsole()
    const lines = new ConsoleLines(port)
    for (let round = 1; round <= 2; round += 1) {
      port.waitingBytes = 2 ** 20
      lines.append('lost\n    at a stack\n')
      lines.flush()
      port.waitingBytes = 0
      port.printed = ''
      lines.append('back\n')
      lines.flush()
      assert.equal(port.printed, '... 2 lines left out: the console was not read\nback\n')
      assert.equal(lines.problem, undefined)
    }
  })
})

test('standard error gets at most 1 MiB, in bytes', (t) => {
  const written = t.mock.method(process.stderr, 'write', () => true)
  Object.defineProperty(process.stderr, 'writableLength', { get: () => 2 ** 20 - 9, configurable: true })
  t.after(() => Reflect.deleteProperty(process.stderr, 'writableLength'))
  const terminal = createProcessConsole()
  terminal.error('äöüß.\n')
  terminal.error('äöüß\n')
  assert.deepEqual(written.mock.calls.map(({ arguments: [text] }) => text), ['äöüß\n'])
})
