// A plain start loads what it needs, and nothing that belongs to what it was not asked for.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { root } from '../support/launch.ts'
import { loadedFiles } from './loaded.ts'
import { measure } from './measures.ts'

describe('a plain start', () => {
  it('loads no more than it did, with five percent of room, when it has answered a page, a 404, a file and its status', async (t) => {
    const loaded = await loadedFiles(t, root)
    assert.ok(loaded.includes('core/server.ts'))
    for (const { what, value, limit } of measure(root, loaded)) {
      if (limit !== undefined) assert.ok(value <= limit * 1.05, `${what}: ${value}, more than five percent above ${limit}`)
    }
  })
})
