import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseRedisUrl, problemOfRedisUrl, type RedisTarget } from '../../lib/config/redis-url.ts'

const server = (host: string, port: number, tls = false): RedisTarget['address'] => ({ host, port, tls })
const target = (address: RedisTarget['address'], label: string, rest: Partial<RedisTarget> = {}): RedisTarget => ({
  address,
  user: '',
  password: '',
  database: 0,
  label,
  ...rest,
})

const right: readonly (readonly [url: string, target: RedisTarget])[] = [
  ['redis://h', target(server('h', 6379), 'redis://h:6379')],
  ['redis://h/', target(server('h', 6379), 'redis://h:6379')],
  ['redis://10.0.0.1:6380/3', target(server('10.0.0.1', 6380), 'redis://10.0.0.1:6380/3', { database: 3 })],
  ['redis://[::1]:7', target(server('::1', 7), 'redis://[::1]:7')],
  ['rediss://r.example.org', target(server('r.example.org', 6379, true), 'rediss://r.example.org:6379')],
  ['redis://u@h', target(server('h', 6379), 'redis://h:6379', { user: 'u' })],
  ['redis://:p%40%3a@h', target(server('h', 6379), 'redis://h:6379', { password: 'p@:' })],
  ['redis://u%C3%A9:p@my_host:1', target(server('my_host', 1), 'redis://my_host:1', { user: 'ué', password: 'p' })],
  ['redis+unix:///run/r.sock', target({ path: '/run/r.sock' }, 'redis+unix:///run/r.sock')],
  ['redis+unix:///a%20b?db=2', target({ path: '/a b' }, 'redis+unix:///a b?db=2', { database: 2 })],
  ['redis+unix://u:p@/r.sock', target({ path: '/r.sock' }, 'redis+unix:///r.sock', { user: 'u', password: 'p' })],
]

const wrong: readonly string[] = [
  '',
  'http://h',
  'REDIS://h',
  'redis:h',
  'redis://',
  'redis://:secret@',
  'redis://:sec/ret@h',
  'redis://u:12/secret@h',
  'redis://:secret#@h',
  'redis://h#x',
  'redis://h?secret',
  'redis://h:0',
  'redis://h:65536',
  'redis://h/x',
  'redis://h/1/2',
  'redis://h/-1',
  'redis://%ff:secret@h',
  'redis+unix://',
  'redis+unix:///',
  'redis+unix://tmp/r.sock',
  'redis+unix:///r.sock?database=1',
  'redis+unix:///r.sock?db=1&db=2',
  'redis+unix:///r.sock?db=one',
  'redis+unix:///r%00.sock',
]

describe('the address of a Redis server', () => {
  for (const [url, expected] of right) {
    it(`is read: ${url}`, () => assert.deepEqual(parseRedisUrl(url), expected))
  }

  for (const url of wrong) {
    it(`is refused without quoting it: ${url}`, () => {
      const problem = problemOfRedisUrl(url) ?? ''
      assert.match(problem, /^must be redis:.* with percent-encoding/)
      assert.doesNotMatch(problem, /secret/)
    })
  }

  it('prefers a password from elsewhere to its own, without decoding it', () => {
    assert.equal(parseRedisUrl('redis://u:p@h', 'a%40b').password, 'a%40b')
    assert.equal(parseRedisUrl('redis://u@h', 'secret').password, 'secret')
    assert.doesNotMatch(parseRedisUrl('redis://u:secret@h/1').label, /u|secret/)
  })
})
