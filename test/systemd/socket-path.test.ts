import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { socketPath } from '../../lib/systemd/socket-path.ts'

describe('the path of a Unix socket', () => {
  it('is not known where there is none', () => {
    assert.equal(socketPath(99_999), undefined)
    assert.equal(socketPath(0), undefined)
  })
})
