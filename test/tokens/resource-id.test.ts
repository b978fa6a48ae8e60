import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, it } from 'node:test'
import { createResourceTokens } from '../../lib/tokens/resource-id.ts'

const key = 'a key of the application'
const nowMs = 1_700_000_000_999
const now = (): number => nowMs
const tokens = createResourceTokens({ keys: [key], now })

/** The token as specified, made by hand. */
function signed(payload: string, signingKey = key): string {
  return `${payload}.${createHmac('sha256', signingKey).update(payload).digest('hex')}`
}

/** A token over these bytes, with a valid signature. */
function over(bytes: string | Buffer, signingKey = key): string {
  return signed(Buffer.from(bytes as string).toString('base64'), signingKey)
}

describe('a resource-id token', () => {
  it('is the base64 of id and unix seconds, a dot, and the hex HMAC-SHA256 of that text with app_key', () => {
    const token = tokens.make('42')
    assert.equal(token, over('42|1700000000'))
    assert.equal(token.split('.')[0], 'NDJ8MTcwMDAwMDAwMA==')
    assert.match(token.split('.')[1] ?? '', /^[0-9a-f]{64}$/)
  })

  it('restores every id', () => {
    const plain = ['1', '0', ' ', '.', '__proto__', '\0\n', 'é ☃ 😀', '~~~>>>???', 'x'.repeat(5000)]
    for (const id of [...plain, '|', '||', 'a|b', 'a|1700000000']) assert.equal(tokens.read(tokens.make(id)), id)
    assert.equal(tokens.read(tokens.make('\ufeffmarked')), '\ufeffmarked')
  })

  it('does not expire, and its time may be any 1 to 12 digits', () => {
    for (const seconds of ['0', '1', '007', '999999999999']) assert.equal(tokens.read(over(`id|${seconds}`)), 'id')
    const later = createResourceTokens({ keys: [key], now: () => nowMs + 1e12 })
    assert.equal(later.read(tokens.make('id')), 'id')
  })

  it('refuses half a surrogate pair, which UTF-8 cannot hold', () => {
    assert.throws(() => tokens.make('a\ud800'), { name: 'TypeError', message: /well-formed Unicode: it is "a\\ud800"/ })
  })

  it('is read with every key, and signed with the first', () => {
    const rotated = createResourceTokens({ keys: ['new', 'older', key], now })
    assert.equal(rotated.read(tokens.make('7')), '7')
    assert.equal(rotated.read(over('7|1', 'older')), '7')
    assert.equal(rotated.make('7'), over('7|1700000000', 'new'))
    assert.equal(tokens.read(rotated.make('7')), '')
  })

  it('needs keys, none of them empty', () => {
    assert.throws(() => createResourceTokens({ keys: [], now }), { name: 'RangeError', message: /there must be a key/ })
    assert.throws(() => createResourceTokens({ keys: ['a', ''], now }), { message: /no key may be empty: key 2 is/ })
  })
})

describe('an invalid token', () => {
  const good = tokens.make('42')
  const [payload = '', signature = ''] = good.split('.')
  const other = tokens.make('43')
  const rows: Record<string, string> = {
    'nothing': '',
    'a dot': '.',
    'only a payload': payload,
    'a payload and a dot': `${payload}.`,
    'only a signature': `.${signature}`,
    'an id in clear': '42',
    'a truncated signature': good.slice(0, -1),
    'a longer signature': `${good}0`,
    'an upper-case signature': `${payload}.${signature.slice(0, -1)}A`,
    'a signature in base64': `${payload}.${Buffer.from(signature, 'hex').toString('base64')}`,
    'two dots': `${payload}..${signature}`,
    'a trailing dot': `${good}.`,
    'a third part': `${good}.${signature}`,
    'a dot in the payload, correctly signed': signed(`${payload}.`),
    'another payload': `${other.split('.')[0]}.${signature}`,
    'another signature': `${payload}.${other.split('.')[1]}`,
    'the parts in turn': `${signature}.${payload}`,
    'a foreign key': over('42|1700000000', 'another key'),
    'an empty key': over('42|1700000000', ''),
    'a leading space': ` ${good}`,
    'a trailing line end': `${good}\n`,
    'a percent-encoded payload': good.replaceAll('=', '%3D'),
    'a payload without padding, correctly signed': signed('NDJ8MTcwMDAwMDAwMA'),
    'a payload with one pad too few, correctly signed': signed('NDJ8MTcwMDAwMDAwMA='),
    'a payload with one pad too many, correctly signed': signed('NDJ8MTcwMDAwMDAwMA==='),
    'a payload whose last bits are not zero, correctly signed': signed('NDJ8MTcwMDAwMDAwMB=='),
    'a payload with a line end, correctly signed': signed('NDJ8MTcw\nMDAwMDAwMA=='),
    'a payload in base64url, correctly signed': signed(Buffer.from('~~~|1').toString('base64url')),
    'a payload in hex, correctly signed': signed(Buffer.from('42|1').toString('hex')),
    'bytes that are not UTF-8, correctly signed': over(Buffer.from([0xff, 0x7c, 0x31])),
    'an overlong encoding, correctly signed': over(Buffer.from([0xc0, 0xb1, 0x7c, 0x31])),
    'no bar, correctly signed': over('42'),
    'no time, correctly signed': over('42|'),
    'a time of 13 digits, correctly signed': over('42|1700000000000'),
    'a negative time, correctly signed': over('42|-1'),
    'a time with a fraction, correctly signed': over('42|1.5'),
    'a time in other digits, correctly signed': over('42|١'),
    'a time and a line end, correctly signed': over('42|1\n'),
    'an empty payload, correctly signed': signed(''),
  }
  for (const [title, token] of Object.entries(rows)) {
    it(`is refused: ${title}`, () => assert.equal(tokens.read(token), ''))
  }

  it('takes no longer to refuse than to read, whatever its length', () => {
    for (const text of ['a'.repeat(1_000_000), '.'.repeat(1_000_000), `${'='.repeat(1_000_000)}.${signature}`]) {
      const begin = process.cpuUsage()
      assert.equal(tokens.read(text), '')
      assert.ok(process.cpuUsage(begin).user < 1_000_000)
    }
  })
})
