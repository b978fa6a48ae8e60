import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RedisProtocolError, RedisReplyError } from '../../lib/redis/errors.ts'
import type { Command, Reply } from '../../lib/redis/reply.ts'
import { commandText, ReplyParser } from '../../lib/redis/resp.ts'
import { Seeded } from '../support/seeded.ts'

/** Parses bytes in pieces of these lengths; the last piece is the rest. */
function parse(bytes: Buffer, lengths: readonly number[] = []): Reply[] {
  const replies: Reply[] = []
  const parser = new ReplyParser((reply) => replies.push(reply))
  let from = 0
  for (const length of [...lengths, bytes.length]) {
    parser.read(bytes.subarray(from, from + length))
    from += length
  }
  return replies
}

const text = (value: string): Buffer => Buffer.from(value)

const rows: readonly (readonly [bytes: string, replies: readonly Reply[]])[] = [
  ['+OK\r\n', ['OK']],
  ['+\r\n', ['']],
  ['+é\r\n', ['é']],
  [':0\r\n:-1\r\n:+7\r\n', [0, -1, 7]],
  [':9007199254740991\r\n', [9007199254740991]],
  ['$0\r\n\r\n', [text('')]],
  ['$4\r\n\r\n\0\n\r\n', [text('\r\n\0\n')]],
  ['$2\r\né\r\n', [text('é')]],
  ['$-1\r\n', [null]],
  ['*-1\r\n', [null]],
  ['*0\r\n', [[]]],
  ['*3\r\n:1\r\n$-1\r\n+a\r\n', [[1, null, 'a']]],
  ['*2\r\n*1\r\n*0\r\n*2\r\n$1\r\na\r\n*-1\r\n+b\r\n', [[[[]], [text('a'), null]], 'b']],
  ['$3\r\nabc\r\n$3\r\ndef\r\n+x\r\n', [text('abc'), text('def'), 'x']],
]

const wrong: readonly (readonly [bytes: string, message: RegExp])[] = [
  ['HTTP/1.1 400 Bad Request\r\n', /^Redis sent an invalid reply: "HTTP\/1\.1 400 Bad Request\\r\\n"$/],
  ['%1\r\n', /^Redis sent an invalid reply: "%1\\r\\n"$/],
  ['\r\n', /^Redis sent a line that does not end in CR LF: "\\r\\n"$/],
  ['+OK\n', /does not end in CR LF/],
  [':\r\n', /invalid integer/],
  [':1.5\r\n', /invalid integer/],
  [': 1\r\n', /invalid integer/],
  [':9007199254740992\r\n', /invalid integer/],
  ['$-2\r\n', /invalid length/],
  ['$x\r\n', /invalid integer/],
  ['*-2\r\n', /invalid length/],
  ['$1\r\nab\r\n', /differs from its announced length/],
  ['$2\r\na\r\n+', /differs from its announced length/],
]

describe('the parser of replies', () => {
  for (const [bytes, replies] of rows) {
    it(`reads ${JSON.stringify(bytes)} in one piece, and in two and three with any cuts`, () => {
      const all = Buffer.from(bytes)
      assert.deepEqual(parse(all), replies)
      for (let first = 0; first <= all.length; first += 1) {
        for (let second = 0; first + second <= all.length; second += 1) {
          assert.deepEqual(parse(all, [first, second]), replies, `cut at ${first} and ${first + second}`)
        }
      }
    })
  }

  for (const [bytes, message] of wrong) {
    it(`refuses ${JSON.stringify(bytes)}, in one piece and byte by byte`, () => {
      const all = Buffer.from(bytes)
      assert.throws(() => parse(all), (error) => error instanceof RedisProtocolError && message.test(error.message))
      assert.throws(() => parse(all, Array.from(all, () => 1)), RedisProtocolError)
    })
  }

  it('returns errors as values, alone and in lists', () => {
    const [alone, list] = parse(Buffer.from('-WRONGTYPE Operation against a key\r\n*2\r\n-ERR no\r\n:1\r\n'))
    assert.ok(alone instanceof RedisReplyError)
    assert.deepEqual([alone.code, alone.message], ['WRONGTYPE', 'WRONGTYPE Operation against a key'])
    assert.ok(Array.isArray(list) && list[0] instanceof RedisReplyError && list[1] === 1)
  })

  it('limits the bytes of a reply and of an incomplete line', () => {
    const most = 64 * 2 ** 20
    const largest = Buffer.concat([Buffer.from(`$${most - 13}\r\n`), Buffer.alloc(most - 13), Buffer.from('\r\n')])
    assert.equal(largest.length, most)
    assert.equal(parse(Buffer.concat([largest, Buffer.from('$1\r\na\r\n')])).length, 2)
    assert.throws(() => parse(Buffer.from(`$${most - 12}\r\n`)), /a reply of more than 67108864 bytes/)
    assert.throws(() => parse(Buffer.concat([Buffer.from('*2\r\n'), largest])), /more than 67108864 bytes/)
    assert.throws(() => parse(Buffer.from(`+${'x'.repeat(70_000)}`)), /a line without an end/)
    assert.deepEqual(parse(Buffer.from(`+${'x'.repeat(70_000)}\r\n`)), ['x'.repeat(70_000)])
  })

  it('does not allocate an announced length before its bytes arrive', () => {
    assert.deepEqual(parse(Buffer.from('*2000000000\r\n:1\r\n')), [])
  })

  it('reads any valid replies in any pieces', () => {
    const seeded = new Seeded(8)
    for (let round = 0; round < 300; round += 1) {
      const values = Array.from({ length: 1 + seeded.integer(5) }, () => makeReply(seeded, 3))
      const bytes = Buffer.concat(values.map(write))
      const lengths = Array.from({ length: seeded.integer(30) }, () => seeded.integer(20))
      assert.deepEqual(parse(bytes, lengths), values, `round ${round}`)
    }
  })
})

function makeReply(seeded: Seeded, depth: number): Reply {
  const kind = seeded.integer(depth === 0 ? 4 : 6)
  if (kind === 0) return null
  if (kind === 1) return seeded.integer(2 ** 31) - 2 ** 30
  if (kind === 2) return 'x'.repeat(seeded.integer(10))
  if (kind === 3) return seeded.bytes(seeded.integer(40))
  return Array.from({ length: seeded.integer(4) }, () => makeReply(seeded, depth - 1))
}

function write(reply: Reply): Buffer {
  if (reply === null) return Buffer.from('$-1\r\n')
  if (typeof reply === 'number') return Buffer.from(`:${reply}\r\n`)
  if (typeof reply === 'string') return Buffer.from(`+${reply}\r\n`)
  if (Buffer.isBuffer(reply)) return Buffer.concat([Buffer.from(`$${reply.length}\r\n`), reply, Buffer.from('\r\n')])
  if (reply instanceof RedisReplyError) throw new Error('None is made')
  return Buffer.concat([Buffer.from(`*${reply.length}\r\n`), ...reply.map(write)])
}

describe('the writer of commands', () => {
  const commands: readonly (readonly [command: Command, bytes: string])[] = [
    [['PING'], '*1\r\n$4\r\nPING\r\n'],
    [['SET', 'é', ''], '*3\r\n$3\r\nSET\r\n$2\r\né\r\n$0\r\n\r\n'],
    [['EXPIRE', 'a', 10], '*3\r\n$6\r\nEXPIRE\r\n$1\r\na\r\n$2\r\n10\r\n'],
    [['SET', 'a', -0.5], '*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\n-0.5\r\n'],
    [['ECHO', 'a\r\nb\0'], '*2\r\n$4\r\nECHO\r\n$5\r\na\r\nb\0\r\n'],
    [['ECHO', '\ud800'], '*2\r\n$4\r\nECHO\r\n$3\r\n\ufffd\r\n'],
  ]
  for (const [command, bytes] of commands) {
    it(`writes ${JSON.stringify(command)}`, () => assert.equal(Buffer.from(commandText(command)).toString(), bytes))
  }

  it('writes any text so that a parser can read it back', () => {
    const seeded = new Seeded(9)
    for (let round = 0; round < 100; round += 1) {
      const values = Array.from({ length: 1 + seeded.integer(4) }, () => seeded.bytes(seeded.integer(50)).toString('utf8'))
      const sent = Buffer.from(commandText(['X', ...values]))
      assert.deepEqual(parse(sent, [seeded.integer(20)]), [[text('X'), ...values.map(text)]])
    }
  })
})
