import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Peer } from '../../lib/cluster/peer.ts'
import { createWatch } from '../../lib/cluster/watch.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { turns } from './readings-cluster.ts'
import { memoryPorts } from './memory-ports.ts'

/** A watch whose beats a test gives, and a worker that answers when it is let. */
function makeWatch(patience: number) {
  const said: string[] = []
  const say = (message: string): void => void said.push(message)
  const log = Object.assign(() => {}, silentLogger, { info: say, warn: say, error: say })
  const watch = createWatch({ log, patience, beatMs: 2 ** 31 - 1 })
  const [here, there] = memoryPorts()
  const kills: string[] = []
  const peer = new Peer(here)
  let answer: () => void = () => {}
  let hangs: Promise<void> | undefined
  new Peer(there).on('process.alive', () => hangs)
  watch.attach({ number: 1, peer, kill: (signal) => kills.push(signal) })
  return {
    watch,
    said,
    kills,
    peer,
    beats: async (count: number) => {
      for (let at = 0; at < count; at += 1) {
        watch.beat()
        await turns(5)
      }
    },
    hang: () => (hangs = new Promise((resolve) => (answer = resolve))),
    resume: async () => {
      hangs = undefined
      answer()
      await turns(5)
    },
    end: async () => {
      here.close()
      await turns(5)
    },
  }
}

describe('the watch over processes', () => {
  it('has nothing to say of one that answers', async () => {
    const { watch, said, kills, beats } = makeWatch(60)
    assert.equal(watch.answers(1), true)
    await beats(200)
    assert.deepEqual([watch.answers(1), watch.answers(2), said, kills], [true, false, [], []])
  })

  it('says so when one has not answered for long, and when it answers again', async () => {
    const { watch, said, kills, beats, hang, resume } = makeWatch(60)
    hang()
    await beats(59)
    assert.equal(watch.answers(1), false)
    assert.deepEqual(said, ['process 1 has not answered for 10 s'])
    await resume()
    assert.equal(watch.answers(1), true)
    await beats(60)
    assert.deepEqual([said.slice(1), kills], [['process 1 answers again, after 59 s'], []])
  })

  it('is silent about one that is busy for seconds', async () => {
    const { said, kills, beats, hang, resume } = makeWatch(60)
    hang()
    await beats(9)
    await resume()
    await beats(100)
    assert.deepEqual([said, kills], [[], []])
  })

  it('kills one that has not answered in its time, once', async () => {
    const { said, kills, beats, hang } = makeWatch(3)
    await beats(1)
    hang()
    await beats(9)
    assert.deepEqual(said, ['process 1 has not answered for 2 s', 'process 1 has not answered for 3 s: it is killed'])
    assert.deepEqual(kills, ['SIGKILL'])
  })

  it('gives one that is starting a minute at least', async () => {
    const { said, kills, beats, hang } = makeWatch(3)
    hang()
    await beats(59)
    assert.deepEqual(kills, [])
    await beats(1)
    assert.equal(said.at(-1), 'process 1 has not answered for 60 s: it is killed')
    assert.deepEqual(kills, ['SIGKILL'])
  })

  it('kills nobody for that when it is told not to', async () => {
    const { said, kills, beats, hang } = makeWatch(0)
    hang()
    await beats(5000)
    assert.deepEqual([said, kills], [['process 1 has not answered for 10 s'], []])
  })

  it('kills one that does not read what it is told, before that fills the memory', async () => {
    const said: string[] = []
    const log = Object.assign(() => {}, silentLogger, { error: (message: string) => said.push(message) })
    const watch = createWatch({ log, patience: 0 })
    let read: (() => void)[] = []
    const peer = new Peer({ send: (_message, written) => void read.push(written), onMessage: () => {}, onClose: () => {} })
    const kills: string[] = []
    watch.attach({ number: 2, peer, kill: (signal) => kills.push(signal) })
    const event = 'x'.repeat(2 ** 20)
    for (let at = 0; at < 64; at += 1) peer.tell('events.heard', ['news', at, event])
    await turns(2)
    for (const written of read) written()
    assert.equal(peer.backlog, 0)
    read = []
    for (let at = 0; at < 65; at += 1) peer.tell('events.heard', ['news', at, event])
    await turns(2)
    watch.beat()
    watch.beat()
    assert.deepEqual([said, kills], [['process 2 has not read 65 MB of what it was told: it is killed'], ['SIGKILL']])
    watch.close()
  })

  it('forgets one that has ended', async () => {
    const { watch, said, kills, beats, hang, end } = makeWatch(3)
    await beats(1)
    hang()
    await beats(1)
    await end()
    await beats(10)
    assert.deepEqual([watch.answers(1), said, kills], [false, [], []])
  })
})
