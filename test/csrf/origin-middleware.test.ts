// SVC_MwOrigin: the origin of a request decides, without a token.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

type Fields = Readonly<Record<string, string>>

const files = {
  'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs', middleware: 'SVC_MwOrigin' }],
  'a.mjs': "export default () => 'done'",
  'routes/middleware/config.json': { setup: { csrf: { redirect: '/elsewhere' } } },
}

const rows: readonly (readonly [what: string, headers: Fields, status: number])[] = [
  ['from this origin', { 'sec-fetch-site': 'same-origin' }, 200],
  ['from this origin, with a cookie', { 'sec-fetch-site': 'same-origin', cookie: 'a=b' }, 200],
  ['typed', { 'sec-fetch-site': 'none' }, 200],
  ['from this origin, with a page that hides it', { 'sec-fetch-site': 'same-origin', origin: 'null' }, 200],
  ['from another site', { 'sec-fetch-site': 'cross-site' }, 403],
  ['from another subdomain', { 'sec-fetch-site': 'same-site' }, 403],
  ['from a trusted origin', { 'sec-fetch-site': 'cross-site', origin: 'https://shop.example.org' }, 200],
  ['from a trusted origin in capitals, with its port', { origin: 'HTTPS://Shop.Example.ORG:443' }, 200],
  ['from a trusted host with another port', { origin: 'https://shop.example.org:8443' }, 403],
  ['from a trusted app', { origin: 'capacitor://localhost', 'sec-fetch-site': 'cross-site', cookie: 'a=b' }, 200],
  ['from another app', { origin: 'ionic://localhost' }, 403],
  ['from an extension with the name of this host', { origin: 'chrome-extension://127.0.0.1' }, 403],
  ['from another origin', { origin: 'https://evil.example' }, 403],
  ['with the origin null', { origin: 'null' }, 403],
  ['with the origin NULL', { origin: 'NULL' }, 403],
  ['with a broken origin', { origin: 'https://' }, 403],
  ['with another referer', { referer: 'https://evil.example/a' }, 403],
  ['from a program', {}, 200],
  ['from a program with a cookie', { cookie: 'a=b' }, 403],
  ['from a program with a token', { authorization: 'Bearer a' }, 403],
]

describe('SVC_MwOrigin', () => {
  it('passes requests by their origin', async (t) => {
    const { url, lines } = await startApplication(t, files, { 'server.trusted_origins': ['https://shop.example.org', 'capacitor://localhost'] })
    for (const [what, headers, status] of rows) {
      const answer = await request(url, { method: 'POST', headers })
      assert.equal(answer.status, status, what)
      if (status === 403) assert.deepEqual(answer.json(), { error: 'csrf_invalid', reason: 'cross_site' }, what)
    }
    const own = await request(url, { method: 'POST', headers: { origin: url, cookie: 'a=b' } })
    assert.equal(own.status, 200)
    assert.ok(lines().some((line) => /\[WARN \] .*was refused by the CSRF check: cross_site/.test(line)))
  })

  it('passes safe methods, whatever the origin', async (t) => {
    const { url } = await startApplication(t, files)
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      assert.equal((await request(url, { method, headers: { origin: 'https://evil.example', cookie: 'a=b' } })).status, 200)
    }
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      assert.equal((await request(url, { method, headers: { origin: 'https://evil.example' } })).status, 403)
    }
  })
})
