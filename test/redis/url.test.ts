import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseRedisUrl, RedisUrlError, type RedisTarget } from '../../lib/redis/url.ts'

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

const wrong: readonly (readonly [url: string, message: RegExp])[] = [
  ['', /^must begin with redis:\/\/, rediss:\/\/ or redis\+unix:\/\//],
  ['http://h', /^must begin with/],
  ['REDIS://h', /^must begin with/],
  ['redis:h', /^must begin with/],
  ['redis://', /^must name a host/],
  ['redis://:secret@', /^must be a URL, with percent-encoding/],
  ['redis://:sec/ret@h', /^must be a URL, with percent-encoding/],
  ['redis://u:12/secret@h', /^must have the number of a database/],
  ['redis://:secret#@h', /^must be a URL|^must have no #/],
  ['redis://h#x', /^must have no #/],
  ['redis://h?secret', /^must have no \?/],
  ['redis://h:0', /^must have a port from 1/],
  ['redis://h:65536', /^must be a URL/],
  ['redis://h/x', /^must have the number of a database/],
  ['redis://h/1/2', /^must have the number of a database/],
  ['redis://h/-1', /^must have the number of a database/],
  ['redis://%ff:secret@h', /percent-encoded UTF-8/],
  ['redis+unix://', /^must have the path of a socket|^must have a path/],
  ['redis+unix:///', /^must have the path of a socket/],
  ['redis+unix://tmp/r.sock', /^must have a path behind/],
  ['redis+unix:///r.sock?database=1', /^must have no more than db/],
  ['redis+unix:///r.sock?db=1&db=2', /^must have no more than db/],
  ['redis+unix:///r.sock?db=one', /^must have the number of a database/],
  ['redis+unix:///r%00.sock', /^must have the path of a socket/],
]

describe('the address of a Redis server', () => {
  for (const [url, expected] of right) {
    it(`is read: ${url}`, () => assert.deepEqual(parseRedisUrl(url), expected))
  }

  for (const [url, message] of wrong) {
    it(`is refused without showing it: ${url}`, () => {
      assert.throws(
        () => parseRedisUrl(url),
        (error) => error instanceof RedisUrlError && message.test(error.message) && !/secret/.test(error.message),
      )
    })
  }

  it('takes a password from elsewhere before its own, as it is', () => {
    assert.equal(parseRedisUrl('redis://u:p@h', 'a%40b').password, 'a%40b')
    assert.equal(parseRedisUrl('redis://u@h', 'secret').password, 'secret')
    assert.doesNotMatch(parseRedisUrl('redis://u:secret@h/1').label, /u|secret/)
  })
})
