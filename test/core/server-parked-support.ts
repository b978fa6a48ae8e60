// Replies that wait for events of a test, the application that parks them, and checks shared by few and many replies.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { FullContext } from '../support/context.ts'
import { BodyReply, StreamReply, textType, type ReadyReply } from '../../lib/http/reply.ts'
import { ParkedReply, type EndReason, type ParkedKind } from '../../lib/http/parked.ts'
import { Connection, cutAtEnd, requestText } from '../support/connection.ts'
import type { TestApplication } from '../support/application.ts'
import type { RawAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { until } from '../support/until.ts'

export const text = (body: string): BodyReply => new BodyReply(textType, body)

/** Where test replies wait: one list, in order of arrival. */
export class Source {
  readonly waiters = new Set<TestPoll>()
  readonly log: string[] = []
  /** The result of `ready`. */
  ready: () => ReadyReply | undefined | Promise<ReadyReply | undefined> = () => undefined
  onWaiting: (poll: TestPoll) => void = (poll) => void this.waiters.add(poll)
  onStarted: (poll: TestPoll) => StreamReply | undefined = () => undefined

  /** Gives an event to the first reply whose client is connected. Returns how many were tried. */
  give(event: string): number {
    let asked = 0
    for (const poll of this.waiters) {
      asked += 1
      this.waiters.delete(poll)
      if (poll.take(text(event))) break
    }
    return asked
  }
}

export class TestPoll extends ParkedReply {
  readonly kind: ParkedKind
  readonly source: Source
  readonly name: string

  constructor(ctx: FullContext, source: Source) {
    super(ctx, Number(ctx.query.get('ms') ?? Infinity))
    this.kind = ctx.query.has('sse') ? 'sse' : 'longpoll'
    this.source = source
    this.name = ctx.params['name'] ?? ''
  }

  ready() {
    return this.source.ready()
  }

  waiting(): void {
    this.source.log.push(`waiting ${this.name}`)
    this.source.onWaiting(this)
  }

  started(): StreamReply | undefined {
    this.source.log.push(`started ${this.name}`)
    return this.source.onStarted(this)
  }

  ended(reason: EndReason): ReadyReply | undefined {
    this.source.log.push(`${reason} ${this.name}`)
    this.source.waiters.delete(this)
    if (!this.ctx.response.headersSent) return reason === 'left' ? undefined : text(`empty (${reason})`)
    this.ctx.response.end()
    return undefined
  }

  take(reply: ReadyReply | undefined): boolean {
    return this.answer(reply)
  }

  break(error: unknown): void {
    this.fail(error)
  }
}

type Making = (ctx: FullContext, source: Source) => unknown

/** Makes an application whose `/poll/:name` parks a reply of a source; `?ms=` is its time-out, `?sse` makes it a stream. */
export async function serveParked(
  t: TestContext,
  config: Readonly<Record<string, unknown>> = {},
  make: Making = (ctx, source) => new TestPoll(ctx, source),
): Promise<TestApplication & { source: Source; polls: (...names: string[]) => Promise<Connection[]> }> {
  const source = new Source()
  const key = `parked-${process.pid}-${Math.random()}`
  Reflect.set(globalThis, key, (ctx: FullContext) => make(ctx, source))
  t.after(() => Reflect.deleteProperty(globalThis, key))
  cutAtEnd(t)
  const action = `(ctx) => globalThis['${key}'](ctx)`
  const app = await serve(t, { '/poll/:name': action, '/plain': '() => "plain"' }, config)
  /** Opens a connection per poll, and waits until each poll waits. */
  const polls = async (...names: string[]): Promise<Connection[]> => {
    const connections: Connection[] = []
    for (const name of names) {
      const connection = new Connection(t, app.port)
      connections.push(connection)
      await connection.send(requestText(`GET /poll/${name}`))
      await until(() => source.log.includes(`waiting ${name.split('?')[0]}`))
    }
    return connections
  }
  return Object.assign(app, { source, polls })
}

export const bodies = (answers: readonly RawAnswer[]): string[] => answers.map(({ body }) => body)
/** A stream that writes `begin` and then its events. */
export const beginStream = (poll: TestPoll): StreamReply =>
  new StreamReply(200, ['Content-Type', 'text/event-stream'], 0, (response) => {
    response.write(`begin ${poll.name}\n`)
  })

/** Sends ten pipelined polls on each of `count` connections: two of them may wait. */
export async function checkManyPolls(t: TestContext, count: number): Promise<void> {
  const places = { 'pool_rest.workers_longpoll': count, 'pool_rest.queue_size': count }
  const { source, port, app, url } = await serveParked(t, { 'log.level': 'info', ...places })
  const connections = Array.from({ length: count }, () => new Connection(t, port))
  const ten = requestText('GET /poll/a').repeat(10)
  await Promise.all(connections.map((connection) => connection.send(ten)))
  const logged = (word: string): number => source.log.filter((line) => line.startsWith(word)).length
  await until(() => source.waiters.size === count)
  assert.deepEqual([logged('waiting'), logged('started')], [count, count])
  assert.equal((await request(`${url}/plain`)).text, 'plain')
  for (const connection of connections) connection.socket.destroy()
  await until(() => source.waiters.size === 0)
  assert.equal(logged('left'), count)
  const again = Array.from({ length: 2 }, () => request(`${url}/poll/b`))
  await until(() => source.waiters.size === 2)
  while (source.waiters.size > 0) source.give('event')
  assert.deepEqual((await Promise.all(again)).map((answer) => answer.text), ['event', 'event'])
  await app.stop()
}

/**
 * Stops a server that holds `count` replies.
 * @param count at most a quarter of them are in the queue
 * @param streams how many are streams, none of them in the queue
 */
export async function checkStopWithPolls(t: TestContext, count: number, streams: number): Promise<void> {
  const config = { 'log.level': 'info', 'pool_rest.workers_longpoll': count * 0.75 }
  const { source, port, app, lines } = await serveParked(t, config)
  source.onStarted = (poll) => (poll.kind === 'sse' ? beginStream(poll) : undefined)
  const connections = Array.from({ length: count }, () => new Connection(t, port))
  const isStream = (at: number): boolean => at < streams
  await Promise.all(
    connections.map((connection, at) => connection.send(requestText(`GET /poll/${at}${isStream(at) ? '?sse' : ''}`))),
  )
  await until(() => source.waiters.size === count)
  const stopped = app.stop()
  const answers = await Promise.all(connections.map((connection) => connection.closed()))
  await stopped
  for (const [at, answer] of answers.entries()) {
    if (isStream(at)) assert.match(answer, /begin \d+\n\r\n0\r\n\r\n$/)
    else assert.match(answer, /\r\nConnection: close\r\n[^]*empty \(stop\)$/)
  }
  assert.equal(lines('access.log').length, count)
  assert.equal(source.waiters.size, 0)
}
