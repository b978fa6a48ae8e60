// Sessions in the database of a server, with one process and with several.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { launch, runLauncher } from '../support/launch.ts'
import { hasSqlite } from '../support/sqlite.ts'

function makeFolder(processes: number): string {
  return applicationFolder(
    {
      'routes/count.json': [{ name: 'count', url: '/count', action: 'count.mjs', middleware: 'SVC_MwSession' }],
      'count.mjs': `export default ({ session, text }) => {
        session.set('count', (session.get('count') ?? 0) + 1)
        return text(String(session.get('count')))
      }`,
      'routes/middleware/config.json': { setup: { session: { store: 'data' } } },
    },
    { 'server.processes': processes },
  )
}

describe('the session store data', () => {
  it('needs a Node with SQLite: check and start exit with 78 elsewhere; check opens no file', async (t) => {
    const folder = makeFolder(1)
    const checked = await runLauncher(t, ['check'], { cwd: folder })
    assert.equal(existsSync(join(folder, '.data')), false)
    if (hasSqlite) return assert.equal(checked.status, 0, checked.stderr)
    assert.equal(checked.status, 78)
    const { status, stdout, stderr } = await runLauncher(t, ['start'], { cwd: folder })
    assert.equal(status, 78)
    assert.match(stdout + stderr, /setup: paths\.data needs node:sqlite, .*: run Node 22\.13 or later/)
  })

  if (!hasSqlite) return
  for (const processes of [1, 2]) {
    it(`keeps sessions when the server is killed, with ${processes} processes`, async (t) => {
      const folder = makeFolder(processes)
      let cookie = ''
      for (let run = 0; run < 3; run += 1) {
        const server = launch(t, ['start'], { cwd: folder })
        const base = await server.listening()
        for (let count = 1; count <= 4; count += 1) {
          const answer = await fetch(`${base}/count`, { headers: { cookie, connection: 'close' } })
          cookie = answer.headers.get('set-cookie')?.split(';', 1).join() ?? cookie
          assert.equal(await answer.text(), String(run * 4 + count))
        }
        server.child.kill('SIGKILL')
        await server.ended
      }
    })

    it(`is refused while another server uses its file, with ${processes} processes`, async (t) => {
      const folder = makeFolder(processes)
      await launch(t, ['start'], { cwd: folder }).listening()
      const { status, stdout, stderr } = await runLauncher(t, ['start'], { cwd: folder })
      assert.equal(status, 1)
      assert.match(stdout + stderr, /svc\.db is in use by another server/)
    })
  }
})
