// The files of earlier versions with today's server.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { complaintsIn } from '../support/log-lines.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { putFiles, readWritten, upgradedFiles, user, versions } from './written.ts'

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
})
