import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { judge } from '../../lib/access/credentials.ts'

describe('the credentials of a node', () => {
  const none = { user: '', password: '', secret: '' }
  const one = { user: 'a', password: 'p', secret: 's' }
  const withFactor = { ...one, secondFactor: { secret: 'x', recoveryCodes: ['a'] } }

  it('are its own, or the shared ones', () => {
    const rows = [
      [none, undefined, 'same'],
      [none, one, 'take'],
      [{ ...none, secret: 'x' }, one, 'take'],
      [one, undefined, 'give'],
      [one, one, 'same'],
      [{ ...one, secret: '' }, one, 'take'],
      [one, { ...one, secret: '' }, 'give'],
      [one, { ...one, secret: 'other' }, 'differ'],
      [one, { ...one, user: 'other' }, 'differ'],
      [{ ...one, secret: '' }, { ...one, password: 'other' }, 'differ'],
      [none, withFactor, 'take'],
      [withFactor, undefined, 'give'],
      [withFactor, { ...withFactor, secondFactor: { secret: 'x', recoveryCodes: [] } }, 'same'],
      [{ ...withFactor, secret: '' }, withFactor, 'take'],
      [withFactor, { ...withFactor, secondFactor: { secret: 'other', recoveryCodes: ['a'] } }, 'differ'],
      [one, withFactor, 'differ'],
      [{ ...one, secret: '' }, withFactor, 'differ'],
      [withFactor, one, 'differ'],
    ] as const
    for (const [own, shared, expected] of rows) assert.equal(judge(own, shared), expected, JSON.stringify([own, shared]))
  })
})
