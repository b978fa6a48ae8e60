import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { adminCookieName } from '../../lib/access/cookie.ts'
import type { ModuleLogger } from '../../lib/log/logger.ts'
import type { TestAction } from '../support/context.ts'
import { SettingsError } from '../../lib/chain/settings.ts'
import { createSessionGroup, type SessionGroupOptions } from '../../lib/session/group.ts'
import { OpenReplies } from '../../lib/session/open-replies.ts'
import { isAtOrIn } from '../../lib/files/paths.ts'
import { openLocalStore } from '../../lib/session-stores/local-store.ts'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import type { SessionStore } from '../../lib/session/store.ts'
import { keepingLogger } from '../support/log-lines.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { visit } from './session-server.ts'

const actions: Readonly<Record<string, TestAction>> = {
  write: ({ session }) => session.set('a', 1),
  read: ({ session }) => String(session.get('a', 'none')),
  late: async (ctx) => {
    ctx.session.set('a', 2)
    const { host, cookie = '' } = ctx.headers
    await request(`http://${host}/destroy`, { headers: { cookie } })
  },
  destroy: ({ session }) => session.destroy(),
}

describe('the settings of sessions', () => {
  const wrong: readonly [given: unknown, problem: RegExp][] = [
    [{ cookie: '' }, /^setup\.session\.cookie must be a cookie name, a token of 1 to 256 characters: it is ""$/],
    [{ cookie: adminCookieName }, /^setup\.session\.cookie must be another name: .* admin panel: it is "svc_admin"$/],
    [{ cookie: 'a b' }, /^setup\.session\.cookie/],
    [{ cookie: 'a'.repeat(257) }, /^setup\.session\.cookie/],
    [{ ttl_s: -1 }, /^setup\.session\.ttl_s must be 0 to 31536000: it is -1$/],
    [{ ttl_s: 31_536_001 }, /^setup\.session\.ttl_s/],
    [{ sweep_every: 0 }, /^setup\.session\.sweep_every must be 1 to 1000000/],
    [{ max: 0 }, /^setup\.session\.max must be 1 to 10000000/],
    [{ store: 'redis' }, /^setup\.session\.store must be auto, memory, file or data/],
    [{ store: 'file' }, /^setup\.session\.path must be a folder, since setup\.session\.store is "file"$/],
    [{ store: 'file', path: 'a\u0000' }, /^setup\.session\.path must be a path without control characters/],
    [{ store: 'file', path: 'file' }, /^setup\.session\.path must be a folder: .*\/file is not a folder$/],
    [{ store: 'file', path: 'file/below' }, /^setup\.session\.path must be a folder: ENOTDIR/],
    [{ store: 'file', path: 'public/sessions' }, /^setup\.session\.path must not be in paths\.public, .* it is public\/sessions$/],
    [{ store: 'file', path: 'x'.repeat(5000) }, /^setup\.session\.path must be a folder: ENAMETOOLONG/],
    [[], /^setup\.session must be an object with cookie, ttl_s, sweep_every, max, store, path$/],
  ]
  for (const [given, problem] of wrong) {
    it(`are refused: ${JSON.stringify(given).slice(0, 60)}`, () => {
      const { group, folder } = make()
      fs.writeFileSync(join(folder, 'file'), '')
      assert.throws(
        () => group.prepare(given),
        (error) => error instanceof SettingsError && problem.test(error.message),
      )
    })
  }

  it('produce warnings for suspicious values', () => {
    const { group } = make()
    const { warnings } = group.prepare({ path: 'sessions', ttls: 5 })
    assert.deepEqual(warnings, [
      'unknown key setup.session.ttls: did you mean ttl_s?',
      'setup.session.path is not used: setup.session.store is "auto"',
    ])
    assert.deepEqual(group.prepare(undefined).warnings, [])
  })

  it('are the defaults until others are committed', async (t) => {
    const { group } = make()
    const { visitor } = await visit(t, actions, { group })
    const before = await visitor.ask('write')
    assert.match(before.headers['set-cookie']?.[0] ?? '', /^SVCSID=[\w-]{43}; Max-Age=3600;/)
    const prepared = group.prepare({ cookie: '__own', ttl_s: 5 })
    visitor.id = undefined
    assert.match((await visitor.ask('write')).headers['set-cookie']?.[0] ?? '', /^SVCSID=/)
    prepared.commit()
    visitor.id = undefined
    assert.match((await visitor.ask('write')).headers['set-cookie']?.[0] ?? '', /^__own=[\w-]{43}; Max-Age=5;/)
    assert.deepEqual([...group.middleware.keys()], ['SVC_MwSession'])
  })
})

describe('a reload', () => {
  it('keeps the store if its own settings are unchanged', async (t) => {
    const { group } = make()
    const { visitor } = await visit(t, actions, { group })
    await visitor.ask('write')
    group.prepare({ ttl_s: 60, sweep_every: 5, path: 'unused' }).commit()
    assert.equal((await visitor.ask('read')).text, '1')
    group.prepare({ max: 5 }).commit()
    assert.equal((await visitor.ask('read')).text, 'none')
  })

  it('moves to files and back; existing files of the folder are found again', async (t) => {
    const { group, folder } = make()
    const { visitor } = await visit(t, actions, { group })
    group.prepare({ store: 'file', path: 'a/../sessions' }).commit()
    await visitor.ask('write')
    assert.equal(fs.readdirSync(join(folder, 'sessions')).length, 1)
    group.prepare({ store: 'file', path: join(folder, 'sessions'), max: 5 }).commit()
    assert.equal((await visitor.ask('read')).text, '1')
    group.prepare({}).commit()
    assert.equal((await visitor.ask('read')).text, 'none')
    group.prepare({ store: 'file', path: 'sessions' }).commit()
    assert.equal((await visitor.ask('read')).text, '1')
  })

  it('that is abandoned changes nothing', async (t) => {
    const { group, folder } = make()
    const { visitor } = await visit(t, actions, { group })
    await visitor.ask('write')
    group.prepare({ store: 'file', path: 'sessions', cookie: 'other' }).abandon?.()
    group.prepare({ ttl_s: 5 }).abandon?.()
    assert.equal((await visitor.ask('read')).text, '1')
    assert.equal(fs.existsSync(join(folder, 'sessions')), false)
  })
})

describe('the current store', () => {
  it('is swept after the configured number of saves; a failing sweep is logged', async (t) => {
    const { group, folder, lines } = make()
    const { visitor } = await visit(t, actions, { group })
    group.prepare({ store: 'file', path: 'sessions', sweep_every: 2 }).commit()
    await visitor.ask('write')
    const sessions = join(folder, 'sessions')
    const file = join(sessions, fs.readdirSync(sessions)[0] as string)
    fs.utimesSync(file, 1, 1)
    visitor.id = undefined
    await visitor.ask('write')
    await until(() => !fs.existsSync(file))
    assert.equal(fs.readdirSync(sessions).length, 1)

    t.after(syncBuiltinESMExports)
    t.mock.method(fs.promises, 'opendir', () => Promise.reject(new Error('refused by the test')))
    syncBuiltinESMExports()
    await visitor.ask('write')
    await visitor.ask('write')
    await until(() => lines.length > 0)
    t.mock.restoreAll()
    const reason = `Cannot sweep the sessions in ${sessions}: refused by the test; ${advice}`
    assert.deepEqual(lines, [`error ERROR Cannot sweep the sessions: ${reason}`])
  })

  it('reports once that it is full, and counts', async (t) => {
    const { group, lines } = make()
    const { visitor } = await visit(t, actions, { group })
    group.prepare({ max: 1 }).commit()
    for (let round = 0; round < 3; round++) {
      visitor.id = undefined
      await visitor.ask('write')
    }
    assert.deepEqual({ ...group.counts }, { evicted: 2, damaged: 0 })
    assert.deepEqual(lines, [
      'error WARN the session store is full (setup.session.max is 1): from now on the least recently used session is dropped',
    ])
    group.prepare({ max: 2 }).commit()
    assert.deepEqual({ ...group.counts }, { evicted: 2, damaged: 0 }, 'of all stores since the start')
  })

  it('reports damaged files', async (t) => {
    const { group, folder, lines } = make()
    const { visitor } = await visit(t, actions, { group })
    group.prepare({ store: 'file', path: 'sessions' }).commit()
    await visitor.ask('write')
    const [name = ''] = fs.readdirSync(join(folder, 'sessions'))
    const path = join(folder, 'sessions', name)
    fs.writeFileSync(path, '{')
    fs.utimesSync(path, 2 ** 31, 2 ** 31)
    assert.equal((await visitor.ask('read')).text, 'none')
    assert.deepEqual(lines, [`error WARN the session file ${path} is damaged and was ignored: it is not a JSON object`])
    assert.equal(group.counts.damaged, 1)
  })

  it('fails no request because of a session file with a value that is not JSON', async (t) => {
    const { group, folder, lines } = make()
    const flash: TestAction = ({ session }) => [session.get('_flash')]
    const { visitor, failures } = await visit(t, { ...actions, flash }, { group })
    group.prepare({ store: 'file', path: 'sessions' }).commit()
    for (const field of [['key:a', '{'], ['flash:f', '"x"']]) {
      visitor.id = undefined
      await visitor.ask('write')
      const sessions = join(folder, 'sessions')
      const path = join(sessions, fs.readdirSync(sessions)[0] as string)
      fs.writeFileSync(path, JSON.stringify({ version: 1, fields: [field] }))
      fs.utimesSync(path, 2 ** 31, 2 ** 31)
      assert.equal((await visitor.ask('read')).text, 'none')
      assert.deepEqual(await visitor.json('flash'), [null])
      fs.unlinkSync(path)
    }
    assert.deepEqual([failures, lines.length, group.counts.damaged], [[], 2, 2])
  })

  it('is closed with the group', async (t) => {
    const { group } = make()
    const { visitor } = await visit(t, actions, { group })
    await visitor.ask('write')
    await group.close()
    assert.equal((await visitor.ask('read')).text, 'none')
  })
})

describe('sessions with a shared store', () => {
  /** Makes a group whose shared stores are recorded as they are opened and closed. */
  function makeShared() {
    const opened: SessionStore[] = []
    const problems: ((message: string) => void)[] = []
    const made = make({
      openSharedStore: (onProblem) => {
        const store = createMemoryStore({ max: 10, onFull: () => {} })
        opened.push(store)
        problems.push(onProblem)
        return store
      },
    })
    return { ...made, opened, problems }
  }

  it('are stored there unless another store is configured, which causes a warning', async () => {
    const { group, opened } = makeShared()
    for (const given of [undefined, { store: 'auto' }, { max: 5 }, { ttl_s: 5 }]) {
      const prepared = group.prepare(given)
      assert.deepEqual(prepared.warnings, [])
      prepared.commit()
      assert.equal(opened.length, 1, 'it is unchanged')
    }
    for (const given of [{ store: 'memory' }, { store: 'file', path: 'sessions' }]) {
      assert.deepEqual(group.prepare(given).warnings, [
        `sessions are not shared, since setup.session.store is "${given.store}": "auto" shares them by shared.url`,
      ])
    }
    await group.close()
  })

  it('change the store by a reload, and back', async (t) => {
    const { group } = makeShared()
    const { visitor } = await visit(t, actions, { group })
    await visitor.ask('write')
    group.prepare({ store: 'memory' }).commit()
    assert.equal((await visitor.ask('read')).text, 'none')
    await visitor.ask('write')
    assert.equal((await visitor.ask('read')).text, '1')
    group.prepare({ store: 'auto' }).commit()
    assert.equal((await visitor.ask('read')).text, 'none')
  })

  it('report refusals of a shared store once a second', () => {
    const { problems, lines } = makeShared()
    for (let count = 0; count < 100; count += 1) problems[0]?.('the shared engine refuses a session: OOM')
    assert.deepEqual(lines, ['error WARN the shared engine refuses a session: OOM'])
  })
})

const advice = 'the user that the server runs as must be able to write there, and the disk must have room'

/** Makes a group whose log lines are collected: module, level, message. */
function make(options: Pick<SessionGroupOptions, 'openSharedStore'> = {}) {
  const folder = temporaryFolder()
  const lines: string[] = []
  const log = (module: string): ModuleLogger =>
    keepingLogger((line) => lines.push(`${module} ${line}`))
  const isPublic = (path: string): boolean => isAtOrIn(join(folder, 'public'), path)
  const group = createSessionGroup({
    openStoreHere: openLocalStore, openReplies: new OpenReplies(), ...options, folder, isPublic, log,
  })
  return { group, folder, lines }
}
