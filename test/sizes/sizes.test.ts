// What there is to read is as small as it was: sizes, the length of lines and functions.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { root } from '../support/launch.ts'
import { measure } from './measures.ts'
import { exportedNames, functionsOf, longLines, readSources, undocumentedExports, type Source } from './scan.ts'

const source = (text: string): Source => ({ path: 'a.ts', lines: text.split('\n') })

describe('the sources', () => {
  it('are within their sizes, with five percent of room', () => {
    for (const { what, value, limit } of measure(root)) {
      if (limit !== undefined) assert.ok(value <= limit * 1.05, `${what}: ${value}, more than five percent above ${limit} (test/sizes/measures.ts): write less, or use another room`)
    }
  })
})

describe('the style', () => {
  it('has no line of more than 120 characters', () => {
    const long = readSources(join(root, 'lib')).flatMap((file) => longLines(file).map((line) => `${file.path}:${line}`))
    assert.deepEqual(long, [])
  })

  it('has a doc comment on everything that is exported', () => {
    const inTemplates = 'commands/init.ts: hello' // Of the files that `init` writes.
    const bare = readSources(join(root, 'lib')).flatMap((file) => undocumentedExports(file).map((name) => `${file.path}: ${name}`))
    assert.deepEqual(bare.filter((one) => one !== inTemplates), [])
  })
})

describe('the scanner of sources', () => {
  it('counts the lines of a function without those of the functions within it', () => {
    const found = functionsOf(source(`export function outer({ a }: Options): void {
  const inner = (): void => {
    one()
  }
  if (a) {
    two(() => {
      three()
    })
  }
}

class Thing {
  async #method(
    a: string,
  ): Promise<void> {
    four()
  }

  get size(): number {
    return 1
  }
}`))
    assert.deepEqual(found.map(({ name, line, ownLines }) => [name, line, ownLines]), [
      ['outer', 1, 7], ['inner', 2, 3], ['#method', 13, 5], ['size', 19, 3],
    ])
  })

  it('takes apart parameters that are taken apart', () => {
    assert.deepEqual(
      functionsOf(source('function f({\n  a,\n}: Options): void {\n  a()\n}')).map(({ ownLines }) => ownLines),
      [5],
    )
  })

  it('finds names that are exported, alone and in lists', () => {
    const text = "export const a = 1\nexport async function b() {}\nexport type { C, D as E } from './x.ts'\nexport {\n  f,\n}\nconst g = 2"
    assert.deepEqual(exportedNames(source(text)), ['a', 'b', 'C', 'E', 'f'])
  })

  it('finds exports without a doc comment', () => {
    const text = "/** A. */\nexport const a = 1\n\nexport const b = 2\n/** C. */\nexport function c(): void\nexport function c(): void {}\nexport { a as d }"
    assert.deepEqual(undocumentedExports(source(text)), ['b'])
  })

  it('finds lines of more than 120 characters', () => {
    assert.deepEqual(longLines(source(`${'a'.repeat(120)}\n${'a'.repeat(121)}`)), [2])
  })

  it('finds sources', () => {
    assert.ok(readSources(join(root, 'lib')).some(({ path, lines }) => path === 'http/cookie.ts' && lines.length > 100))
  })
})
