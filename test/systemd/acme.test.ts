/** The application of docs/deploy/acme, with its own files: only port and folders are those of the test. */
import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { loadConfig } from '../../lib/config/load.ts'
import { createApp } from '../support/app.ts'
import { writeFiles } from '../support/application.ts'
import { root } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const host = 'www.example.org'

async function start(t: TestContext): Promise<string> {
  const folder = temporaryFolder()
  cpSync(join(root, 'docs/deploy/acme'), folder, { recursive: true })
  writeFiles(folder, { 'public/.well-known/acme-challenge/tok_en-1': 'tok_en-1.thumbprint', 'public/secret': 'secret', 'public/.well-known/acme-challenge/.hidden': '' })
  const local = { 'server.port': 0, 'log.console': false, 'paths.log': 'log', 'paths.cache': 'cache', 'paths.temp': 'temp', 'paths.data': 'data' }
  const app = createApp({ loaded: loadConfig(join(folder, 'svc.json'), local) })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  return (await app.start()).url
}

describe('the application for port 80', () => {
  it('answers a challenge from the folder of certbot, and no other file of it', async (t) => {
    const url = await start(t)
    const ask = (path: string) => request(url + path, { headers: { host } })
    const { status, text } = await ask('/.well-known/acme-challenge/tok_en-1')
    assert.deepEqual([status, text], [200, 'tok_en-1.thumbprint'])
    for (const token of ['none', '..%2f..%2fsecret', '.hidden']) assert.equal((await ask(`/.well-known/acme-challenge/${token}`)).status, 404, token)
  })

  it('redirects everything else to https, with its path and query and without the port', async (t) => {
    const url = await start(t)
    const rows = [['/', '/'], ['/a%20b/c?d=1&e=%C3%A9', '/a%20b/c?d=1&e=%C3%A9'], ['//other.example/', '//other.example/'], ['/secret', '/secret']]
    for (const [path = '', to = ''] of rows) {
      for (const [method, given] of [['GET', host], ['POST', `${host}:80`]] as const) {
        const { status, headers } = await request(url + path, { method, headers: { host: given } })
        assert.deepEqual([status, headers.location], [308, `https://${host}${to}`])
      }
    }
  })

  it('redirects to no name but those of server.allowed_hosts, and has no panel', async (t) => {
    const url = await start(t)
    assert.equal((await request(`${url}/`, { headers: { host: 'other.example' } })).status, 400)
    assert.equal((await request(`${url}/svc-login`, { headers: { host } })).headers.location, `https://${host}/svc-login`)
    assert.equal((await request(`${url}/svc-ready`, { headers: { host } })).status, 200)
  })
})
