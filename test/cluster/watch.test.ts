import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Peer } from '../../lib/cluster/peer.ts'
import { createWatch } from '../../lib/cluster/watch.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { turns } from './readings-cluster.ts'
import { memoryPorts } from './memory-ports.ts'

/** A watch with manual beats, and a worker that answers when the test allows it. */
function makeWatch(patience: number) {
  const said: string[] = []
  const hung: number[] = []
  const say = (message: string): void => void said.push(message)
  const log = Object.assign(() => {}, silentLogger, { info: say, warn: say, error: say })
  const watch = createWatch({ log, patience, onHang: (number) => hung.push(number), beatMs: 2 ** 31 - 1 })
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
    hung,
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
  it('logs nothing about a worker that answers', async () => {
    const { watch, said, kills, beats } = makeWatch(60)
    assert.equal(watch.answers(1), true)
    await beats(200)
    assert.deepEqual([watch.answers(1), watch.answers(2), said, kills], [true, false, [], []])
  })

  it('logs when a worker has not answered for long, and when it answers again', async () => {
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

  it('ignores a worker that is busy for seconds', async () => {
    const { said, kills, beats, hang, resume } = makeWatch(60)
    hang()
    await beats(9)
    await resume()
    await beats(100)
    assert.deepEqual([said, kills], [[], []])
  })

  it('kills a worker that has not answered in time, once', async () => {
    const { said, kills, hung, beats, hang } = makeWatch(3)
    await beats(1)
    hang()
    await beats(9)
    assert.deepEqual(said, ['process 1 has not answered for 2 s', 'process 1 has not answered for 3 s: killing it'])
    assert.deepEqual([kills, hung], [['SIGKILL'], [1]])
  })

  it('gives a starting worker at least a minute', async () => {
    const { said, kills, beats, hang } = makeWatch(3)
    hang()
    await beats(59)
    assert.deepEqual(kills, [])
    await beats(1)
    assert.equal(said.at(-1), 'process 1 has not answered for 60 s: killing it')
    assert.deepEqual(kills, ['SIGKILL'])
  })

  it('never kills with patience 0', async () => {
    const { said, kills, beats, hang } = makeWatch(0)
    hang()
    await beats(5000)
    assert.deepEqual([said, kills], [['process 1 has not answered for 10 s'], []])
  })

  it('kills a worker that does not read its messages before they fill the memory', async () => {
    const said: string[] = []
    const log = Object.assign(() => {}, silentLogger, { error: (message: string) => said.push(message) })
    const watch = createWatch({ log, patience: 0 })
    let read: (() => void)[] = []
    const peer = new Peer({ send: (_message, written) => void read.push(written), onMessage: () => {}, onClose: () => {} })
    const kills: string[] = []
    watch.attach({ number: 2, peer, kill: (signal) => kills.push(signal) })
    const event = 'x'.repeat(2 ** 20)
    for (let at = 0; at < 64; at += 1) peer.notify('events.heard', ['news', at, event])
    await turns(2)
    for (const written of read) written()
    assert.equal(peer.backlog, 0)
    read = []
    for (let at = 0; at < 65; at += 1) peer.notify('events.heard', ['news', at, event])
    await turns(2)
    watch.beat()
    watch.beat()
    assert.deepEqual([said, kills], [['process 2 has not read 65 MB of messages: killing it'], ['SIGKILL']])
    watch.close()
  })

  it('forgets a worker that has ended', async () => {
    const { watch, said, kills, beats, hang, end } = makeWatch(3)
    await beats(1)
    hang()
    await beats(1)
    await end()
    await beats(10)
    assert.deepEqual([watch.answers(1), said, kills], [false, [], []])
  })
})
