import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError } from '../../lib/config/load.ts'
import { takeListenFds } from '../../lib/systemd/service.ts'

describe('the variables of socket activation', () => {
  const rows: readonly [title: string, env: Record<string, string>, warning: RegExp | undefined][] = [
    ['none', {}, undefined],
    ['no sockets', { LISTEN_FDS: '0', LISTEN_PID: '7' }, undefined],
    ['sockets of another process', { LISTEN_FDS: '1', LISTEN_PID: '8' }, /^LISTEN_FDS is not used: LISTEN_PID is 8, and this is process 7$/],
    ['sockets of nobody', { LISTEN_FDS: '1' }, /LISTEN_PID is missing/],
  ]
  for (const [title, env, warning] of rows) {
    it(`give no socket: ${title}`, () => {
      const found = takeListenFds(env, 7)
      assert.equal(found.fd, undefined)
      if (warning === undefined) assert.equal(found.warning, undefined)
      else assert.match(found.warning ?? '', warning)
    })
  }

  const wrong: readonly [count: string, names: Record<string, string>, problem: RegExp][] = [
    ['2', {}, /LISTEN_FDS must be 1: it is 2; let svc\.socket have one ListenStream=$/],
    ['2', { LISTEN_FDNAMES: 'http:https' }, /it is 2 \(http:https\);/],
    ['-1', {}, /it is -1;/],
    ['one', {}, /it is one;/],
  ]
  for (const [count, names, problem] of wrong) {
    it(`are an error of the configuration: ${count} ${names['LISTEN_FDNAMES'] ?? ''}`, () => {
      const env = { LISTEN_FDS: count, LISTEN_PID: '7', ...names }
      assert.throws(
        () => takeListenFds(env, 7),
        (error) => error instanceof ConfigError && problem.test(error.message),
      )
    })
  }

  it('are removed from the environment, whatever their values', () => {
    for (const pid of [7, 8]) {
      const env = { LISTEN_FDS: '0', LISTEN_PID: '7', LISTEN_FDNAMES: 'svc.socket', PATH: '/bin' }
      takeListenFds(env, pid)
      assert.deepEqual(env, { PATH: '/bin' })
    }
  })
})
