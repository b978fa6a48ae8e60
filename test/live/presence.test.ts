// Presence in one process and in several, with a simulated clock.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, mock } from 'node:test'
import type { Channel } from '../../lib/events/channel.ts'
import { createEvents } from '../../lib/events/events.ts'
import { ReplySender } from '../../lib/events/reply-sender.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import type { CoreContext } from '../../lib/http/context.ts'
import { Presence, type Member } from '../../lib/live/presence.ts'
import type { ModuleLogger } from '../../lib/log/logger.ts'

const board = { name: 'board' } as Channel
const noLog = (): ModuleLogger => ({}) as ModuleLogger // Nothing is logged here.

let nowMs = 0
beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  mock.method(performance, 'now', () => nowMs)
})
afterEach(() => mock.reset())

/** Advances the clock in steps, and delivers published messages after each. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    nowMs += 50
    mock.timers.tick(50)
    for (let turn = 0; turn < 4; turn += 1) await new Promise(setImmediate)
  }
}

type Process = Presence & { readonly link: { isCut: boolean } }

/** Up to three processes that share events. Each can be kept from publishing. */
function startProcesses(count: number): [Process, Process, Process] {
  const broker = new LocalBroker()
  const processes = Array.from({ length: count }, () => {
    const bus = createEvents({ log: noLog, broker }).channel('svc.presence')
    const link = { isCut: false }
    const lossy = { subscribe: bus.subscribe.bind(bus), publish: (news: unknown) => (link.isCut ? 0 : bus.publish(news)) }
    return Object.assign(new Presence(count > 1 ? () => lossy as unknown as Channel : undefined), { link })
  })
  return processes as [Process, Process, Process] // A test takes as many as it asks for.
}

/** A client with its stream: the messages it received, and the members it knows. */
function connect(presence: Presence, member: Member) {
  const ctx = {} as CoreContext
  const received: string[] = []
  const known = new Map<Member['id'], Member>()
  presence.add(ctx, board, member)
  const end = new ReplySender(ctx, (event, json) => {
    const { type, members } = JSON.parse(json) as { type: string; members: Member[] }
    received.push(`${event} ${type} ${members.map(({ id }) => id).join()}`)
    if (type === 'list') known.clear()
    for (const one of members) if (type === 'leave') known.delete(one.id); else known.set(one.id, one)
  })
  return { received, ids: () => [...known.keys()].sort().join(), known, leave: () => end.close() }
}

describe('presence', () => {
  it('sends the members, then who joins and, ten seconds after the last connection, who leaves', async () => {
    const [presence] = startProcesses(1)
    const ann = connect(presence, { id: 'ann', name: 'Ann' })
    const bob = connect(presence, { id: 'bob' })
    const again = connect(presence, { id: 'bob' })
    await pass(100)
    assert.deepEqual(ann.received, ['presence list ann', 'presence join ann,bob'])
    assert.deepEqual(bob.received, ['presence list ann,bob', 'presence join ann,bob'])
    bob.leave()
    await pass(15_000)
    assert.equal(ann.ids(), 'ann,bob')
    again.leave()
    await pass(9900)
    assert.equal(ann.ids(), 'ann,bob')
    await pass(300)
    assert.equal(ann.received.at(-1), 'presence leave bob')
  })

  it('renews a stream within a minute, since a vanished client does not reconnect', async () => {
    const [presence] = startProcesses(1)
    const ann = connect(presence, { id: 'ann' })
    const ctx = {} as CoreContext
    let end: ReplySender | undefined = undefined
    presence.add(ctx, board, { id: 'bob' })
    end = new ReplySender(ctx, () => {}, () => end?.close())
    await pass(44_000)
    assert.equal(ann.ids(), 'ann,bob')
    await pass(26_500) // A minute at most, and ten seconds for the next stream.
    assert.equal(ann.ids(), 'ann')
    ann.leave()
  })

  it('ignores a page reload, and reports a changed member', async () => {
    const [presence] = startProcesses(1)
    const ann = connect(presence, { id: 'ann' })
    const bob = connect(presence, { id: 'bob' })
    await pass(200)
    const before = ann.received.length
    bob.leave()
    await pass(3000)
    connect(presence, { id: 'bob' })
    await pass(20_000)
    assert.equal(ann.received.length, before)
    connect(presence, { id: 'bob', name: 'Bob' })
    await pass(200)
    assert.deepEqual(ann.known.get('bob'), { id: 'bob', name: 'Bob' })
  })

  it('is the same across processes, with one message for all that join at once', async () => {
    const [one, two, three] = startProcesses(3)
    const ann = connect(one, { id: 'ann' })
    const bob = connect(two, { id: 'bob' })
    await pass(300)
    const many = Array.from({ length: 1000 }, (_, id) => connect(three, { id }))
    await pass(300)
    for (const client of [ann, bob, many[0] as typeof ann]) assert.equal(client.known.size, 1002)
    assert.ok(ann.received.length < 10, ann.received.map((text) => text.slice(0, 30)).join())
    connect(two, { id: 5 })
    for (const client of many) client.leave()
    await pass(11_000)
    assert.equal(ann.ids(), '5,ann,bob')
    assert.equal(bob.ids(), '5,ann,bob')
  })

  it('keeps a member that moves to another process', async () => {
    const [one, two] = startProcesses(2)
    const ann = connect(one, { id: 'ann' })
    const bob = connect(one, { id: 'bob' })
    connect(two, { id: 'carl' })
    await pass(300)
    const before = ann.received.length
    bob.leave()
    await pass(2000)
    connect(two, { id: 'bob' })
    await pass(30_000)
    assert.equal(ann.received.length, before)
    assert.equal(ann.ids(), 'ann,bob,carl')
  })

  it('drops the members of a dead process, and recovers those of one that was silent', async () => {
    const [one, two, three] = startProcesses(3)
    const ann = connect(one, { id: 'ann' })
    connect(two, { id: 'bob' })
    await pass(300)
    two.link.isCut = true
    const carl = connect(two, { id: 'carl' }) // Nobody hears of it.
    await pass(1000)
    assert.equal(ann.ids(), 'ann,bob')
    two.link.isCut = false
    await pass(4000)
    assert.equal(ann.ids(), 'ann,bob,carl')
    assert.equal(carl.ids(), 'ann,bob,carl')
    two.link.isCut = true
    await pass(8000)
    assert.equal(ann.ids(), 'ann,bob,carl')
    await pass(8000)
    assert.equal(ann.ids(), 'ann')
    connect(three, { id: 'dora' })
    await pass(300)
    assert.equal(ann.ids(), 'ann,dora')
  })

  it('drops a member whose leaving another process could not report', async () => {
    const [one, two] = startProcesses(2)
    const ann = connect(one, { id: 'ann' })
    connect(two, { id: 'bob' })
    const carl = connect(two, { id: 'carl' })
    await pass(300)
    carl.leave()
    await pass(9000)
    two.link.isCut = true
    await pass(2000)
    assert.equal(ann.ids(), 'ann,bob,carl')
    two.link.isCut = false
    await pass(4000)
    assert.equal(ann.ids(), 'ann,bob')
  })

  it('sends nothing once it is closed, whatever its connections do', async () => {
    const [one, two] = startProcesses(2)
    const ann = connect(one, { id: 'ann' })
    const bob = connect(two, { id: 'bob' })
    await pass(300)
    one.close()
    const late = connect(one, { id: 'late' })
    ann.leave()
    await pass(11_000)
    assert.deepEqual([late.received, bob.ids()], [[], 'ann,bob'])
    await pass(5000)
    assert.equal(bob.ids(), 'bob', 'the process was silent for too long')
  })

  it('refuses a member without an id, that is not JSON, or of more than 1 KiB', () => {
    const [presence] = startProcesses(1)
    for (const wrong of [undefined, null, {}, { id: '' }, { id: null }, { id: NaN }, { id: 'ann', seen: new Set() }, 'ann', { id: 'ann', text: 'x'.repeat(1024) }]) {
      assert.throws(() => presence.add({} as CoreContext, board, wrong as Member), TypeError)
    }
  })
})
