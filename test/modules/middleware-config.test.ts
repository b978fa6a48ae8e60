import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { MiddlewareError, readMiddlewareConfig } from '../../lib/modules/middleware-config.ts'
import { writeFiles } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

describe('the middleware configuration', () => {
  it('is empty when there is no file', () => {
    const folder = temporaryFolder()
    const file = join(folder, 'config.json')
    const { locate, ...content } = readMiddlewareConfig(folder, [])
    assert.deepEqual(content, { file, load: [], setup: {}, warnings: [] })
    assert.deepEqual(locate('setup.csrf.lapse must be 1'), { file, message: 'setup.csrf.lapse must be 1' })
    assert.deepEqual(readMiddlewareConfig(join(folder, 'none'), []).load, [])
  })

  it('reads load and setup', () => {
    const folder = temporaryFolder()
    const content = { load: ['a.js', 'b/c.mjs', 'd.ts'], setup: { csrf: { lapse: 5 } } }
    writeFiles(folder, { 'config.json': `\ufeff${JSON.stringify(content)}` })
    const { load, setup, warnings } = readMiddlewareConfig(folder, ['csrf'])
    assert.deepEqual({ load, setup, warnings }, { ...content, warnings: [] })
  })

  it('ignores $schema, which is for editors', () => {
    const folder = temporaryFolder()
    writeFiles(folder, { 'config.json': { $schema: '../svc/docs/schemas/middleware.schema.json', load: ['a.js'] } })
    const { load, warnings } = readMiddlewareConfig(folder, [])
    assert.deepEqual([load, warnings], [['a.js'], []])
  })

  it('warns of unknown keys and groups', () => {
    const folder = temporaryFolder()
    writeFiles(folder, { 'config.json': { loads: [], setup: { crsf: {}, sesion: {}, mail: {} } } })
    assert.deepEqual(readMiddlewareConfig(folder, ['session', 'csrf']).warnings, [
      'unknown key loads: it has load and setup',
      'nothing reads setup.crsf: did you mean setup.csrf?',
      'nothing reads setup.sesion: did you mean setup.session?',
      'nothing reads setup.mail',
    ])
  })

  const wrong: readonly [content: unknown, problem: RegExp][] = [
    ['', /config\.json: it is empty: write \{\} for no middleware$/],
    ['{"load": [}', /config\.json: .*line 1/],
    ['{"load": [], "load": []}', /config\.json: .*load/],
    [[], /it must be an object with the members load and setup/],
    ['null', /it must be an object/],
    [Buffer.from('{"setup": {"\xff": {}}}', 'latin1'), /^Cannot load .*config\.json: it is not UTF-8$/],
    [{ load: 'a.js' }, /load must be a list of file names/],
    [{ load: [1] }, /load must be a list of file names/],
    [{ setup: [] }, /setup must be an object/],
    [{ load: 'x', setup: [] }, /load must be a list of file names; setup must be an object/],
    [{ setup: null }, /setup must be an object/],
    [{ $schema: 7 }, /^Cannot load .*config\.json: \$schema must be a string$/],
  ]
  for (const [content, problem] of wrong) {
    it(`refuses ${Buffer.isBuffer(content) ? 'Latin-1' : JSON.stringify(content)}`, () => {
      const folder = temporaryFolder()
      writeFiles(folder, { 'config.json': content })
      const file = join(folder, 'config.json')
      assert.throws(
        () => readMiddlewareConfig(folder, []),
        (error) => error instanceof MiddlewareError && error.file === file && problem.test(error.message),
      )
    })
  }

  it('names a file that cannot be read', () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'config.json'))
    assert.throws(() => readMiddlewareConfig(folder, []), /^MiddlewareError: Cannot load .*config\.json: it is not a regular file$/)
  })
})
