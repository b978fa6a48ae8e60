// The command `docs`: starts the launcher.
import assert from 'node:assert/strict'
import { cpSync, existsSync } from 'node:fs'
import { connect, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { launch, root, runLauncher } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('serves the documents on 127.0.0.1 and ends with 0 on a signal, also with an open connection', async (t) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const cwd = temporaryFolder()
    const server = launch(t, ['docs', '--port', '0'], { cwd })
    const url = await server.listening()
    assert.equal(new URL(url).hostname, '127.0.0.1')
    const page = await request(`${url}/docs/forms`)
    assert.deepEqual([page.status, page.headers['content-type']], [200, 'text/html; charset=utf-8'])
    assert.match(page.text, /<h1 id="forms">Forms<\/h1>/)
    const policy = String(page.headers['content-security-policy'])
    assert.match(policy, /^default-src 'none'; style-src 'sha256-[\w+/=]+'; script-src 'sha256-[\w+/=]+'; /)
    assert.doesNotMatch(policy, /unsafe|\*|http/)
    assert.equal((await request(`${url}/docs/forms`, { method: 'HEAD' })).text, '')
    assert.equal((await request(`${url}/docs/forms`, { method: 'POST' })).status, 405)
    assert.equal((await request(`${url}/nowhere`)).status, 404)
    const open = connect(Number(new URL(url).port), '127.0.0.1')
    open.write('GET //[ HTTP/1.1\r\nHost: a\r\n\r\n')
    const [answer] = (await once(open, 'data')) as [Buffer]
    assert.match(answer.toString(), /^HTTP\/1\.1 400 /)
    server.child.kill(signal)
    assert.equal(await server.ended, 0)
    assert.equal(server.stderr(), '')
    open.destroy()
  }
})

test('exits with 1 and says why when the port is taken or there are no documents', async (t) => {
  const other = createServer()
  await once(other.listen(0, '127.0.0.1'), 'listening')
  t.after(() => other.close())
  const { port } = other.address() as AddressInfo
  const taken = await runLauncher(t, ['docs', '--port', String(port)], { cwd: temporaryFolder() })
  assert.equal(taken.status, 1)
  assert.match(taken.stderr, /^Cannot show the documents: listen EADDRINUSE.*: give another --port, 0 for any free one\n$/)

  const folder = temporaryFolder()
  for (const name of ['bin', 'package.json']) cpSync(join(root, name), join(folder, name), { recursive: true })
  for (const name of ['lib', 'dist']) {
    if (existsSync(join(root, name))) cpSync(join(root, name), join(folder, name), { recursive: true })
  }
  const none = await runLauncher(t, ['docs'], { cwd: folder, launcher: join(folder, 'bin/svc.js') })
  assert.deepEqual([none.status, none.stdout], [1, ''])
  assert.match(none.stderr, /^Cannot show the documents: .*no such file or directory.*docs'?\n$/)
})
