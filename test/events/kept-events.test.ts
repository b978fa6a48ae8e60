// Channels and queues across restarts of a server without an engine.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { KeptEvents } from '../../lib/events/kept-events.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import { startApplication, type TestApplication } from '../support/application.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const files = {
  'routes/a.json': [
    { name: 'poll', url: '/poll', action: 'a.mjs' },
    { name: 'job', url: '/job', action: 'a.mjs@job' },
  ],
  'a.mjs': `
    export default (ctx) => ctx.longPoll(ctx.channel('news'), { timeout_s: 0 })
    export const job = (ctx) => ctx.longPoll(ctx.queue('jobs'), { timeout_s: 0 })`,
}

/** Stops a server as an operator does, and starts it again. */
async function restart(t: TestContext, { app, folder }: TestApplication): Promise<TestApplication> {
  await app.stop()
  return startApplication(t, {}, {}, { folder })
}

const poll = async ({ url }: TestApplication, since: number): Promise<unknown> =>
  (await request(`${url}/poll?since=${since}`)).json()
const job = async ({ url }: TestApplication): Promise<unknown> => ((await request(`${url}/job`)).json() as { event: unknown }).event
const keptFile = ({ folder }: TestApplication): string => join(folder, '.cached/events')

describe('a planned restart', () => {
  it('keeps channels with their ids, and queues with undelivered events', async (t) => {
    const first = await startApplication(t, files)
    const ids = [1, 2, 3].map((value) => Number(first.app.channel('news').publish(value)))
    for (const value of ['a', 'b', 'c']) void first.app.queue('jobs').push(value)
    assert.equal(await job(first), 'a')
    await first.app.stop()
    assert.equal(statSync(keptFile(first)).mode & 0o777, 0o600)
    const second = await startApplication(t, {}, {}, { folder: first.folder })
    assert.equal(existsSync(keptFile(first)), false)
    const [id = 0] = ids
    assert.deepEqual(await poll(second, id), { events: [{ id: id + 1, data: 2 }, { id: id + 2, data: 3 }], last_id: id + 2 })
    assert.equal(second.app.channel('news').publish(4), id + 3)
    assert.deepEqual([await job(second), await job(second), await job(second)], ['b', 'c', null])
    assert.match(second.lines().join('\n'), /restored from the last run: 5 events in 2 channels and queues/)
    const third = await restart(t, second)
    assert.deepEqual(await poll(third, id + 2), { events: [{ id: id + 3, data: 4 }], last_id: id + 3 })
  })

  it('keeps the others when a channel was followed, and a queue was polled, that had no event', async (t) => {
    const first = await startApplication(t, {
      ...files,
      'routes/b.json': [{ name: 'quiet', url: '/quiet', action: 'b.mjs' }],
      'b.mjs': "export default (ctx) => ctx.longPoll(ctx.channel('quiet'), { timeout_s: 0 })",
    })
    await request(`${first.url}/quiet`)
    assert.equal(await job(first), null)
    const id = Number(first.app.channel('news').publish(1))
    const second = await restart(t, first)
    assert.deepEqual(await poll(second, id - 1), { events: [{ id, data: 1 }], last_id: id })
    assert.doesNotMatch(second.lines().join('\n'), /Cannot restore/)
  })

  it('keeps events that never expire', async (t) => {
    const first = await startApplication(t, files)
    const id = Number(first.app.channel('news', { age_s: Infinity }).publish(1))
    void first.app.queue('jobs', { age_s: Infinity }).push('a')
    await first.app.stop()
    const second = await startApplication(t, {}, {}, { folder: first.folder })
    assert.deepEqual(await poll(second, id - 1), { events: [{ id, data: 1 }], last_id: id })
    const third = await restart(t, second)
    assert.deepEqual(await poll(third, id - 1), { events: [{ id, data: 1 }], last_id: id })
    assert.equal(await job(third), 'a')
  })

  it('reports a gap when the file is damaged, of another version or unreadable, and sets it aside', async (t) => {
    const rewritten = (file: string, change: (text: string) => string): void => {
      const text = change(readFileSync(file, 'utf8').split('\n').slice(1).join('\n'))
      writeFileSync(file, `svc-events 1 ${createHash('sha256').update(text).digest('hex')}\n${text}`)
    }
    const rows: readonly (readonly [ending: string, reason: string, damage: (file: string) => void])[] = [
      ['damaged', 'it is damaged', (file) => writeFileSync(file, readFileSync(file, 'utf8').replace('"text":"1"', '"text":"2"'))],
      ['damaged', 'it is damaged', (file) => writeFileSync(file, readFileSync(file, 'utf8').slice(0, -1))],
      ['damaged', 'it is damaged', (file) => writeFileSync(file, '')],
      ['other-version', 'another version of svc wrote it, in format 2; this one reads format 1', (file) =>
        writeFileSync(file, readFileSync(file, 'utf8').replace('svc-events 1', 'svc-events 2'))],
      ['damaged', 'it has content that svc does not write', (file) => rewritten(file, () => '{}\n')],
      ['damaged', 'it has content that svc does not write', (file) => rewritten(file, () => '[\n')],
      ['damaged', 'it has content that svc does not write', (file) => rewritten(file, (text) => text.replace('"text":"1"', '"text":"{"'))],
      ['damaged', 'it has content that svc does not write', (file) => rewritten(file, (text) => text.replace(/"at":[\d.]+/, '"at":"now"'))],
      ['unread', 'EISDIR: .*; to restore them, stop the server, give the file to the user that the server runs as', (file) => {
        rmSync(file)
        mkdirSync(file)
      }],
    ]
    for (const [ending, reason, damage] of rows) {
      const first = await startApplication(t, files)
      const id = Number(first.app.channel('news').publish(1))
      await first.app.stop()
      damage(keptFile(first))
      const second = await startApplication(t, {}, {}, { folder: first.folder })
      assert.equal((await poll(second, id) as { gap?: boolean }).gap, true)
      assert.match(second.lines().join('\n'), new RegExp(`WARN.* Cannot restore the events in .*events: ${reason}.*; clients get a gap`))
      assert.deepEqual([existsSync(keptFile(first)), existsSync(`${keptFile(first)}.${ending}`)], [false, true])
    }
  })

  it('starts with any byte of the file changed', () => {
    const folder = temporaryFolder()
    const file = join(folder, 'events')
    const text = '{"kind":"channel","name":"c","limits":{"maxEvents":1,"maxAgeMs":1000},"lastId":1,"events":[{"text":"1","at":1}]}\n'
    const whole = Buffer.from(`svc-events 1 ${createHash('sha256').update(text).digest('hex')}\n${text}`)
    for (let at = 0; at < whole.length; at += 1) {
      const bytes = Buffer.from(whole)
      bytes[at] = (bytes[at] ?? 0) ^ (1 << at % 8)
      writeFileSync(file, bytes)
      const said: string[] = []
      new KeptEvents(new LocalBroker(), folder, { info: () => {}, warn: (line) => void said.push(line) }).restore()
      assert.equal(said.length, 1, `byte ${at}`)
      assert.equal(existsSync(file), false)
    }
  })

  it('does not mistake a file of another user for a damaged one', (t) => {
    const folder = temporaryFolder()
    chmodSync(folder, 0o777)
    writeFileSync(join(folder, 'events'), 'of another user', { mode: 0 })
    const said: string[] = []
    const user = process.geteuid?.() ?? 0
    if (user === 0) process.seteuid?.(65_534) // Root could read it.
    t.after(() => process.seteuid?.(user))
    new KeptEvents(new LocalBroker(), folder, { info: () => {}, warn: (line) => void said.push(line) }).restore()
    process.seteuid?.(user)
    chmodSync(join(folder, 'events.unread'), 0o600)
    assert.match(said.join('\n'), /^Cannot restore the events in .*: EACCES.*give the file to the user that the server runs as.*; it is .*\.unread now$/)
    assert.equal(readFileSync(join(folder, 'events.unread'), 'utf8'), 'of another user')
  })

  it('reports a gap when the events could not be written, and still stops', async (t) => {
    const first = await startApplication(t, files)
    const id = Number(first.app.channel('news').publish(1))
    mkdirSync(join(keptFile(first), 'in-the-way'), { recursive: true })
    await first.app.stop()
    assert.match(first.lines().join('\n'), /WARN.* Cannot keep the events in .*: .*; clients get a gap/)
    const second = await startApplication(t, {}, {}, { folder: first.folder })
    assert.equal((await poll(second, id) as { gap?: boolean }).gap, true)
  })

  it('keeps nothing of a server that never listened, and writes no file without events', async (t) => {
    const { app, folder } = await startApplication(t, files)
    await app.stop()
    assert.equal(existsSync(join(folder, '.cached/events')), false)
  })
})

it('after a crash a cursor gets a gap', async (t) => {
  const first = await startApplication(t, files)
  const id = Number(first.app.channel('news').publish(1))
  await first.app.stop()
  const running = await startApplication(t, {}, {}, { folder: first.folder })
  assert.deepEqual(await poll(running, id), { events: [], last_id: id })
  rmSync(keptFile(first), { force: true }) // As if the stop below were a crash.
  const after = await startApplication(t, {}, {}, { folder: first.folder })
  assert.equal((await poll(after, id) as { gap?: boolean }).gap, true)
})

describe('the events file', () => {
  const limits = { maxEvents: 1000, maxAgeMs: 60_000 }
  const make = (folder: string, clock = { ms: 0 }, mostMs = 60_000) => {
    const broker = new LocalBroker({ now: () => clock.ms, wallNow: () => 1e12 + clock.ms })
    const lines: string[] = []
    const log = { info: (line: string) => lines.push(line), warn: (line: string) => lines.push(line) }
    const kept = new KeptEvents(broker, folder, log, mostMs)
    return { broker, kept, lines, clock }
  }

  it('has the newest of 200,000 events of one channel', async () => {
    const first = make(temporaryFolder())
    first.kept.served()
    const many = { maxEvents: 200_000, maxAgeMs: 60_000 }
    const text = JSON.stringify('x'.repeat(400))
    for (let count = 0; count < 200_000; count += 1) first.broker.publish('news', text, many)
    await first.kept.save()
    assert.match(first.lines.join('\n'), /^dropped \d+ events: a restart keeps at most 64 MiB\nkept for the next start: 1\d{5} events in 1/)
  })

  it('is abandoned when the disk is too slow for the stop', async () => {
    const { broker, kept, lines } = make(temporaryFolder(), { ms: 0 }, 1)
    kept.served()
    const text = JSON.stringify('x'.repeat(2 ** 20))
    for (let count = 0; count < 40; count += 1) broker.publish('news', text, limits)
    await kept.save()
    assert.match(lines.join('\n'), /Cannot keep the events in .*: the disk took longer than 0\.001 s; clients get a gap$/)
  })

  it('has the newest 64 MiB, and reports the rest', async () => {
    const folder = temporaryFolder()
    const first = make(folder)
    first.kept.served()
    const text = JSON.stringify('x'.repeat(2 ** 20))
    for (let count = 0; count < 40; count += 1) {
      first.clock.ms += 1
      first.broker.publish('news', text, limits)
      first.broker.push('jobs', text, limits)
    }
    const lastId = first.broker.read('news', undefined).lastId
    await first.kept.save()
    assert.match(first.lines.join('\n'), /^dropped 17 events: a restart keeps at most 64 MiB\nkept for the next start: 63 events in 2/)
    const second = make(folder, first.clock)
    second.kept.restore()
    assert.equal(second.broker.read('news', lastId - 31).gap, false)
    assert.equal(second.broker.read('news', lastId - 40).gap, true)
  })

  it('lets events age while no server runs, and counts none as newer than now', async () => {
    const folder = temporaryFolder()
    const first = make(folder)
    first.kept.served()
    const id = first.broker.publish('news', '1', limits)
    first.clock.ms += 30_000
    first.broker.publish('news', '2', limits)
    await first.kept.save()
    const later = make(folder, { ms: 70_000 })
    later.kept.restore()
    assert.deepEqual(later.broker.read('news', id).events.map(({ text }) => text), ['2'])
    assert.equal(later.broker.read('news', id - 1).gap, true)
    later.clock.ms += 25_000
    assert.equal(later.broker.read('news', id).gap, true)
    const back = make(folder, { ms: -1_000_000 }) // The clock was set back.
    back.kept.restore()
    back.clock.ms += 59_000
    assert.equal(back.broker.read('news', id).events.length, 1)
    back.clock.ms += 2000
    assert.equal(back.broker.read('news', id).gap, true)
  })
})
