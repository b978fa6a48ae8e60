import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { maxConnections, processDescriptors } from '../../lib/composition/file-descriptors.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('reserves a sixteenth of the file descriptors for files, at least 64', () => {
  const file = join(temporaryFolder(), 'limits')
  const rows: [limit: string, expected: number | undefined][] = [
    ['1024', 960],
    ['65536', 61_440],
    ['64', 1],
    ['unlimited', undefined],
  ]
  for (const [limit, expected] of rows) {
    writeFileSync(file, `Limit  Soft Limit\nMax open files            ${limit}          524288          files\n`)
    const descriptors = processDescriptors(file)
    assert.equal(descriptors && maxConnections(descriptors), expected, limit)
  }
  assert.equal(processDescriptors(join(file, 'none')), undefined)
})
