import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { toOriginForm } from '../../lib/http/framing.ts'

function convert(target: string, method = 'GET'): [boolean, string | undefined, string | undefined] {
  const request = { method, url: target, headers: { host: 'field' } } as unknown as IncomingMessage
  return [toOriginForm(request), request.url, request.headers.host]
}

describe('toOriginForm', () => {
  it('leaves a path unchanged', () => {
    for (const path of ['/', '/a?b', '//c', '/http://x/']) assert.deepEqual(convert(path), [true, path, 'field'])
  })

  it('extracts path, query and host from an absolute form', () => {
    const rows: [string, string, string][] = [
      ['http://a', '/', 'a'],
      ['http://a/', '/', 'a'],
      ['http://a?b=c', '/?b=c', 'a'],
      ['HTTPS://A.example:8443/b/c?d', '/b/c?d', 'A.example:8443'],
      ['http://[::1]:80/x', '/x', '[::1]:80'],
      ['http://a//b', '//b', 'a'],
    ]
    for (const [target, path, host] of rows) assert.deepEqual(convert(target), [true, path, host])
  })

  it('keeps the asterisk of OPTIONS', () => {
    assert.deepEqual(convert('*', 'OPTIONS'), [true, '*', 'field'])
    assert.deepEqual(convert('**', 'OPTIONS'), [false, '/', 'field'])
  })

  it('refuses everything else', () => {
    const targets = ['*', 'a', 'a:80', 'ftp://a/', 'http:///a', 'http://', 'http://u@a/', 'http://a#b', 'http://a b/']
    for (const target of [...targets, 'http://[bad/', 'http://a"b/', 'http://a:99999/', 'http://a:b/', 'http://-<x>/']) {
      assert.deepEqual(convert(target), [false, '/', 'field'], target)
    }
  })
})
