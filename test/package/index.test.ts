import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import * as svc from '../../lib/index.ts'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

describe('the package', () => {
  it('exports only what embedding it needs', () => {
    assert.deepEqual(Object.keys(svc).sort(), ['ConfigError', 'HttpError', 'JobFailed', 'MiddlewareError', 'ReloadError', 'action', 'createApp', 'fields', 'testApp'])
  })

  it('has the files that package.json names', () => {
    const root = new URL('../../', import.meta.url)
    const { exports } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
    assert.deepEqual(exports['.'], { types: './lib/svc.d.ts', default: './dist/index.js' })
    assert.ok(existsSync(new URL('lib/svc.d.ts', root)))
  })

  it('gives applications the error class that the server recognizes', async (t) => {
    const target = new URL('../../lib/index.ts', import.meta.url).href
    const { url } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs' }],
      'a.mjs': `const { HttpError } = await import(${JSON.stringify(target)})
        export default () => { throw new HttpError(418, 'teapot', 'Short and stout') }`,
    })
    const answer = await request(url, { headers: { accept: 'application/json' } })
    assert.deepEqual([answer.status, answer.json()], [418, { error: 'teapot', detail: 'Short and stout' }])
  })
})
