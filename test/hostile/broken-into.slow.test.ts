// An action of an attacker under Node's permission model, after the server has given up the rights of its start.
import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { testKey, writeFiles } from '../support/application.ts'
import { launch, optionsOfTarget, root, runLauncher } from '../support/launch.ts'
import { readPage, tableBelow } from '../support/markdown.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { attempts } from './broken-into.ts'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const canDrop = (major === 24 && minor >= 20) || (major === 26 && minor >= 3) || major > 26
const column = major === 24 ? 1 : 2

const action = `
import * as fs from 'node:fs'
const get = process.getBuiltinModule
const outcomeOf = async (attempt) => {
  try {
    await attempt()
    return 'passes'
  } catch (error) {
    return error.code === 'ERR_ACCESS_DENIED' ? 'denied' : 'fails: ' + (error.code ?? error.name)
  }
}
export const attempt = async ({ readJson, json }) => {
  const places = await readJson()
  const found = {}
${attempts.map(([name, code]) => `  found[${JSON.stringify(name)}] = await outcomeOf(async () => { ${code} })`).join('\n')}
  return json(found)
}
export const word = () => 'word'`

describe('an action that an attacker controls', { skip: !canDrop && 'this Node cannot give up rights' }, () => {
  const endings: (() => unknown)[] = []
  const t = { after: (ending: () => unknown) => void endings.unshift(ending) }
  const found: Record<string, string> = {}
  after(async () => {
    for (const ending of endings) await ending()
  })

  before(async () => {
    const [folder, outside] = [temporaryFolder(), temporaryFolder()]
    const [app, credentials] = [join(folder, 'app'), join(folder, 'credentials')]
    writeFiles(app, {
      'svc.json': { 'server.port': 0, admin: { user: 'ann', password: '0'.repeat(32), secret: 'a secret' } },
      'routes/app.json': [
        { name: 'attempt', url: '/attempt', method: 'POST', action: 'broken.mjs@attempt' },
        { name: 'word', url: '/word', action: 'broken.mjs@word' },
      ],
      'broken.mjs': action,
      'word.mjs': '',
    })
    writeFiles(credentials, { app_key: testKey })
    writeFiles(outside, { secret: 'A=b', 'module.mjs': '', 'module.cjs': '' })
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite') as { DatabaseSync: new (file: string) => { exec(sql: string): void; close(): void } }
    const database = new DatabaseSync(join(outside, 'data.db'))
    database.exec('CREATE TABLE t (x)')
    database.close()
    symlinkSync(join(outside, 'secret'), join(app, 'link'))
    const socket = join(outside, 'socket')
    const listening = createServer((connection) => connection.destroy()).listen(socket)
    t.after(() => listening.close())
    const { stdout } = await runLauncher(t, ['permissions'], { cwd: app })
    const words = (stdout.split('\n')[2] ?? '').slice('ExecStart='.length).split(' ').map((word) => word.replace('%d', credentials))
    const at = words.indexOf(`${root}bin/svc.js`)
    const server = launch(t, words.slice(at + 1), { cwd: app, nodeOptions: [...optionsOfTarget(), ...words.slice(1, at)], env: { CREDENTIALS_DIRECTORY: credentials } })
    const url = await server.listening()
    symlinkSync(join(outside, 'secret'), join(app, '.cached/planted'))
    const places = { outside, app, code: root, socket, credentials, port: Number(new URL(url).port), pid: process.pid }
    const response = await request(`${url}/attempt`, { body: JSON.stringify(places), headers: { 'content-type': 'application/json' } })
    assert.equal(response.status, 200, response.text)
    Object.assign(found, response.json())
    if (process.env['SVC_PRINT'] !== undefined) console.log(JSON.stringify(found))
  })

  it('achieves what docs/decisions/permission.md says, and no more', () => {
    const rows = tableBelow(readPage('docs/decisions/permission.md'), '## What an attacker tries')
    assert.deepEqual(rows.map((row) => row[0]), attempts.map(([name]) => name))
    assert.deepEqual(found, Object.fromEntries(rows.map((row) => [row[0], row[column]])))
  })
})
