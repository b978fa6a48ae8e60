// The files of earlier versions with today's server.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { complaintsIn } from '../support/log-lines.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { putFiles, readFile, readWritten, upgradedFiles, user, versions } from './written.ts'

describe('the files of an earlier version', () => {
  for (const version of versions) {
    it(`are taken over: kept routes, sessions, events (${version})`, async (t) => {
      const folder = temporaryFolder()
      const { hasEvents } = putFiles(version, folder)
      const { app_key, session_in_file: cookie } = readWritten(version)
      const settings = { 'routes/middleware/config.json': { setup: { session: { store: 'file', path: 'sessions' } } } }
      const { url, lines } = await startApplication(t, { ...upgradedFiles, ...settings }, { app_key, 'app.env': 'dev' }, { folder })
      assert.equal((await request(`${url}/kept`)).text, 'same')
      assert.deepEqual((await request(`${url}/user`, { headers: { cookie } })).json(), user)
      if (hasEvents) {
        const { events } = (await request(`${url}/news?since=0`)).json() as { events: { data: unknown }[] }
        assert.deepEqual(events.map(({ data }) => data), [{ text: 'Grüße' }])
        assert.deepEqual((await request(`${url}/job`)).json(), { ok: true, event: { job: 1 } })
      }
      assert.deepEqual(complaintsIn(lines()), [])
    })
  }

  it('begins the chain of the audit log behind the records of 0.9.0, which stay and are no part of it', async (t) => {
    const before = readFile('0.9.0', 'audit.log')
    const { url, folder } = await startApplication(t, { ...upgradedFiles, '.logs/audit.log': before }, { 'app.env': 'dev' })
    const changes = (await request(`${url}/svc-changes?format=json`)).json() as readonly { what: string; seq: number }[]
    assert.deepEqual(changes.map(({ what, seq }) => [what, seq]), [['start', 1]])
    assert.ok(readFileSync(join(folder, '.logs/audit.log'), 'utf8').startsWith(before))
  })
})
