import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'

describe('hold', () => {
  it('waits at most pool_rest.stream_timeout_s', async (t) => {
    const { url } = await serve(
      t,
      { '/never': '({ hold }) => hold(() => new Promise(() => {}), { timeout_s: 1000 })' },
      { 'pool_rest.stream_timeout_s': 1 },
    )
    const before = performance.now()
    assert.equal((await request(`${url}/never`)).status, 204)
    const took = performance.now() - before
    assert.ok(took >= 999 && took < 5000, `${took} ms`)
  })
})
