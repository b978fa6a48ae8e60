// Shared by the tests of the disk cache: a view in the cache, and the seeded check of damaged entries.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ViewsOptions } from '../../lib/views/cache.ts'
import { Seeded } from '../support/seeded.ts'
import { makeViews } from './make-views.ts'
import type { Files } from './make-views.ts'

const files: Files = {
  'sub/v.html': "{{ title }}\n@view 'i.html'\n",
  'i.html': 'i {{ title }}\n',
}
/** The rendered view. */
export const page = 'T\ni T\n'

/** Writes the files, fills the disk cache, and returns what a later process needs. */
export function fill(options: Partial<ViewsOptions> = {}) {
  const first = makeViews(files, { disk: true, ...options })
  assert.equal(first.views.render('sub/v.html', { title: 'T' }, {}), page)
  assert.deepEqual([first.views.hits, first.views.misses, first.problems], [0, 1, []])
  const entry = join(first.root, '.cached/views/sub/v.hrb')
  const later = (more: Partial<ViewsOptions> = {}) =>
    makeViews({}, { disk: true, root: first.root, ...options, ...more })
  return { root: first.root, entry, later }
}

/** Changes a byte of an entry in each round: the page must stay the same. */
export function checkChangedBytes(rounds: number): void {
  const { entry, later } = fill()
  const before = readFileSync(entry)
  const seeded = new Seeded(7)
  for (let round = 0; round < rounds; round++) {
    const damaged = Buffer.from(before)
    const at = seeded.integer(damaged.length)
    damaged[at] = (damaged[at] ?? 0) ^ (1 + seeded.integer(255))
    writeFileSync(entry, damaged)
    assert.equal(later({ ram: false }).views.render('sub/v.html', { title: 'T' }, {}), page)
  }
}
