// The names of the releases with this major version, which docs/versions.md promises to keep.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { currentNames, releasedNames } from './names.ts'

describe('the names of earlier releases', () => {
  const current = currentNames()

  it('are all there: of keys, records, codes, metrics, the panel, types and commands', () => {
    const names = new Set(current)
    assert.deepEqual(releasedNames().filter((name) => !names.has(name)), [])
  })

  it('are of every kind', () => {
    const some = [
      'command check', 'error 404 not_found', 'jobs record.retries default 5', 'key.app.env may be "prod"', 'key.server.port default 8080',
      'key.setup.session.ttl_s default 3600', 'metric svc_http_requests_total code', 'middleware SVC_MwSession', 'option --config',
      'panel GET /svc-status', 'panel Status.requests.total integer', 'routes record.url', 'type HttpError.status', 'type RequestContext.readForm',
    ]
    const released = new Set(releasedNames())
    assert.deepEqual(some.filter((name) => !released.has(name)), [])
    assert.ok(released.size > 1000)
  })
})
