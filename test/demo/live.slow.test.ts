import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { TestApplication } from '../support/application.ts'
import { launchBoard, startBoard, tokenOf } from '../support/board.ts'
import { launch } from '../support/launch.ts'
import { request, type Answer } from '../support/request.ts'
import { until } from '../support/until.ts'
import { saidBy, signedUp, Visitor } from '../support/visitor.ts'

interface Told {
  readonly kind: string
  readonly notice: Readonly<Record<string, unknown>>
}

interface Polled {
  readonly events: readonly { readonly id: number; readonly data: Told }[]
  readonly last_id: number
  readonly gap?: boolean
}

/** The cursor that the page starts with. */
async function cursorOf(url: string): Promise<string> {
  return /data-last-id="(\d+)"/.exec((await request(url)).text)?.[1] ?? ''
}

async function poll(url: string, since: string): Promise<Polled> {
  const answer = await request(`${url}/board/live?since=${since}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json() as Polled
}

/** Resolves when this many polls or streams are open. */
function held({ lines }: TestApplication, count: number): Promise<void> {
  return until(() => lines().filter((line) => line.includes(': parked (')).length >= count)
}

const png = Buffer.from('89504e470d0a1a0a00', 'hex')

describe('GET /board/live', () => {
  it('returns the changes since the page was rendered, like the list', async (t) => {
    const { url } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    const cursor = await cursorOf(url)
    await ann.add('One', new File([png], 'a.png'))
    const [listed] = (await request(`${url}/api/notices`)).json() as Record<string, unknown>[]
    assert.equal(listed?.['picture'], '/pictures/1')
    await ann.submit('/notices/1/edit', '/notices/edit', { text: 'Two' })
    await ann.submit('/notices/1/edit', '/notices/delete')

    const { events, last_id: lastId, gap } = await poll(url, cursor)
    assert.deepEqual(events.map(({ data }) => data), [
      { kind: 'added', notice: listed },
      { kind: 'changed', notice: { ...listed, text: 'Two' } },
      { kind: 'removed', notice: { id: 1 } },
    ])
    assert.deepEqual([events[0]?.id, lastId, gap], [Number(cursor) + 1, Number(cursor) + 3, undefined])
    assert.equal(await cursorOf(url), String(lastId))
  })

  it('answers all waiting polls on a change, and with an empty response when the server stops', async (t) => {
    const board = await startBoard(t)
    const ann = await signedUp(board.url, 'Ann')
    const cursor = await cursorOf(board.url)
    const waiting = [poll(board.url, cursor), poll(board.url, cursor)]
    await held(board, 2)
    await ann.add('One')
    const answers = await Promise.all(waiting)
    for (const { events } of answers) assert.deepEqual(events.map(({ data }) => data.notice['text']), ['One'])

    const last = poll(board.url, String(answers[0]?.last_id))
    await held(board, 3)
    await board.app.stop()
    assert.deepEqual(await last, { events: [], last_id: answers[0]?.last_id })
  })

  it('reports a gap for an unknown cursor, and refuses an invalid one', async (t) => {
    const { url } = await startBoard(t)
    const cursor = Number(await cursorOf(url))
    for (const since of [0, cursor - 1, cursor + 1]) {
      assert.deepEqual(await poll(url, String(since)), { events: [], last_id: cursor, gap: true })
    }
    for (const path of ['/board/live?since=-1', '/board/live?since=', '/board/live?since=x']) {
      const answer = await request(url + path, { headers: { accept: 'application/json' } })
      assert.deepEqual([answer.status, (answer.json() as { error: string }).error], [400, 'bad_cursor'], path)
    }
  })

  it('reports the removal of the oldest notice when there are too many', async (t) => {
    const { url } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    const form = await ann.form('/', '/notices')
    for (let count = 1; count <= 100; count += 1) await ann.send(form, { text: `Notice ${count}` })
    const cursor = await cursorOf(url)
    await ann.send(form, { text: 'Notice 101' })
    const { events } = await poll(url, cursor)
    assert.deepEqual(events.map(({ data: { kind, notice } }) => [kind, notice['id']]), [['added', 101], ['removed', 1]])
  })
})

describe('GET /board/live as a stream', () => {
  it('streams the same changes, from the cursor on and as they occur', async (t) => {
    const { url } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    const cursor = await cursorOf(url)
    await ann.add('One')
    const stream = await openStream(t, `${url}/board/live?since=${cursor}`)
    await until(() => told(stream).length === 1)
    await ann.submit('/notices/1/edit', '/notices/delete')
    await until(() => told(stream).length === 2)
    const { events } = await poll(url, cursor)
    assert.deepEqual(told(stream), events)
    assert.equal(stream.answer.headers['content-type'], 'text/event-stream; charset=utf-8')
  })
})

describe('presence', () => {
  it('is sent to every stream, with names to signed-in users', async (t) => {
    const { url } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    const stream = await openStream(t, `${url}/board/live`, ann)
    await until(() => /event: presence\ndata: {"type":"list","members":\[{"id":.*,"name":"Ann"}\]}/.test(stream.text))
    await openStream(t, `${url}/board/live`)
    await until(() => /event: presence\ndata: {"type":"join","members":\[.*{"id":"[\w-]{36}"}\]}/.test(stream.text))
  })
})

describe('a restart of the board', () => {
  it('keeps notices, pictures, users, sessions and undelivered events', async (t) => {
    const board = await launchBoard(t)
    const { url } = board
    const ann = await signedUp(url, 'Ann')
    await ann.add('One', new File([png], 'a.png'))
    const cursor = await cursorOf(url)
    await ann.add('Two')
    const before = (await request(`${url}/api/notices`)).json()
    const file = join(board.folder, '.cached/board.json')
    await until(() => existsSync(file)) // It does not wait for the stop.
    await board.stop()
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.doesNotMatch(readFileSync(file, 'utf8'), /password of Ann/)
    await board.start()

    assert.deepEqual((await request(`${url}/api/notices`)).json(), before)
    assert.ok((await request(`${url}/pictures/1`)).bytes.equals(png))
    const { events, gap } = await poll(url, cursor)
    assert.deepEqual([events.map(({ data }) => data.notice['text']), gap], [['Two'], undefined])

    await ann.submit('/notices/2/edit', '/notices/delete')
    await ann.add('Three')
    assert.deepEqual(await ids(url), [3, 1])
    const again = new Visitor(url)
    const answer = await again.submit('/sign-in', '/sign-in', { name: 'ann', password: 'password of Ann' })
    assert.deepEqual(saidBy(await again.follow(answer)).messages, ['success: Welcome back, Ann.'])
    assert.equal((await again.get('/notices/1/edit')).status, 200)
    assert.deepEqual(saidBy(await secondAnn(url)).errors, ['This name is taken.'])

    await ann.submit('/notices/3/edit', '/notices/delete')
    await board.stop()
    await board.start()
    await ann.add('Four')
    assert.deepEqual(await ids(url), [4, 1]) // No id is used twice.
  })

  it('fails, with a remedy, if the file is damaged', async (t) => {
    const board = await launchBoard(t)
    await signedUp(board.url, 'Ann')
    await board.stop()
    const file = join(board.folder, '.cached/board.json')
    writeFileSync(file, readFileSync(file, 'utf8').slice(1))
    const launched = launch(t, ['--config', join(board.folder, 'svc.json'), '--port', '0'], { cwd: board.folder })
    assert.equal(await launched.ended, 78)
    const said = /the board cannot be read from \S+\/board\.json: .*: remove it to start over/
    assert.match(launched.stdout() + launched.stderr(), said)
  })

  it('removes expired notices at once', async (t) => {
    const board = await launchBoard(t)
    const ann = await signedUp(board.url, 'Ann')
    for (const text of ['One', 'Two']) await ann.add(text)
    await board.stop()
    const file = join(board.folder, '.cached/board.json')
    const kept = JSON.parse(readFileSync(file, 'utf8')) as { notices: { notices: { writtenAt: string }[] } }
    const oldest = kept.notices.notices[1]
    assert.ok(oldest)
    oldest.writtenAt = '2026-01-01T00:00:00.000Z'
    writeFileSync(file, JSON.stringify(kept))
    await board.start()
    assert.deepEqual(await ids(board.url), [2])
  })

  it('keeps the board of one of several processes, each with a separate board, and logs it', async (t) => {
    const board = await launchBoard(t, { 'server.processes': 2 })
    const headers = { authorization: `Bearer ${tokenOf({ sub: 'Robot' })}`, 'content-type': 'application/json' }
    const add = (text: string) => request(`${board.url}/api/notices`, { method: 'POST', headers, body: JSON.stringify({ text }) })
    const added = await Promise.all(Array.from({ length: 20 }, (_, at) => add(String(at))))
    assert.ok(added.every(({ status }) => status === 201))
    await board.stop()
    await board.start()
    const log = readFileSync(join(board.folder, '.logs/svc.log'), 'utf8')
    const said = log.match(/\[WARN \] \[app\] the board is in process memory: each of the 2 processes has its own board/g)
    assert.equal(said?.length, 2) // Once per start.
  })

  it('loses what could not be written, and logs it; the board keeps working', async (t) => {
    const { url, folder, lines } = await startBoard(t)
    mkdirSync(join(folder, '.cached/board.json'), { recursive: true })
    const ann = await signedUp(url, 'Ann')
    await until(() => lines().some((line) => line.includes('cannot save the board to ')))
    await ann.add('One')
    assert.deepEqual(await ids(url), [1])
  })

  it('keeps the board when only the middleware is reloaded', async (t) => {
    const { url, folder, write, app } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    await ann.add('One')
    const path = 'routes/middleware/board.js'
    write({ [path]: `${readFileSync(join(folder, path), 'utf8')}\n// changed\n` })
    await app.control.apply({ type: 'routes.reload' })
    const cursor = await cursorOf(url)
    await ann.add('Two')
    assert.deepEqual(await ids(url), [2, 1])
    assert.equal((await poll(url, cursor)).events.length, 1)
  })
})

async function ids(url: string): Promise<number[]> {
  return ((await request(`${url}/api/notices`)).json() as { id: number }[]).map(({ id }) => id)
}

async function secondAnn(url: string): Promise<Answer> {
  const visitor = new Visitor(url)
  return visitor.follow(await visitor.signUp('Ann'))
}

interface Stream {
  readonly answer: IncomingMessage
  text: string
}

/** Opens a stream, which is closed when the test ends. */
async function openStream(t: TestContext, url: string, { cookies }: Pick<Visitor, 'cookies'> = { cookies: new Map() }): Promise<Stream> {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const asked = get(url, { agent: false, headers: { accept: 'text/event-stream', cookie } })
  t.after(() => asked.destroy())
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  const stream = { answer, text: '' }
  answer.setEncoding('utf8').on('data', (text: string) => (stream.text += text))
  answer.on('error', () => {}) // It is closed, or the server is stopped.
  return stream
}

/** The events of a stream so far. */
function told({ text }: Stream): { id: number; data: unknown }[] {
  const found = text.matchAll(/^id: (\d+)\ndata: (.*)\n\n/gm)
  return [...found].map(([, id, data = '']) => ({ id: Number(id), data: JSON.parse(data) as unknown }))
}
