/**
 * The visitors of a soaked server, each a loop that ends with its round: single requests of every kind, visitors with a
 * session and a form, clients that wait by poll, stream or WebSocket, and clients whose bytes are no good request.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { exchange, parseAnswer } from '../support/raw.ts'
import { Connection, requestText, splitAnswers } from '../support/connection.ts'
import { handshakeText, WebSocketClient } from '../support/websocket.ts'
import { bodyLimitKb } from './application.ts'
import { Client, type Place, type Question } from './client.ts'

/** One visit: what a visitor does before it begins anew. */
type Visit = (client: Client) => Promise<unknown>

/** How many of each kind of visitor there are. */
const crowd: readonly (readonly [number, Visit])[] = [
  [10, askOnce],
  [4, fillForm],
  [1, publish],
  [4, poll],
  [2, take],
  [4, follow],
  [4, talk],
  [2, misbehave],
]

/** A connection that nobody but its visit ends. */
const nobody = { after: () => {} }
const json = { 'content-type': 'application/json' }

/** Visits the server until the signal of the place aborts. Resolves when every connection is ended. */
export async function visitServer(placeOf: () => Place): Promise<void> {
  const visitors = crowd.flatMap(([count, visit]) => Array.from({ length: count }, () => stay(placeOf(), visit)))
  await Promise.all(visitors)
}

async function stay(place: Place, visit: Visit): Promise<void> {
  while (!place.signal.aborted) {
    const client = new Client(place)
    try {
      for (let times = 10 + place.random.integer(40); times > 0 && !place.signal.aborted; times -= 1) await visit(client)
    } finally {
      client.close()
    }
  }
}

/** Single requests that need nothing from before. */
const singles: readonly (readonly [string, string, Question])[] = [
  ['plain', '/plain', { leaving: 0.05 }],
  ['plain', '/plain', {}],
  ['hello', '/hello/J%C3%BCrgen?mood=fine', { leaving: 0.05 }],
  ['head', '/hello/you', { method: 'HEAD' }],
  ['view', '/page/ann', { leaving: 0.05 }],
  ['view', '/page/ann', { headers: { 'accept-encoding': 'gzip' } }],
  ['static', '/style.css', { leaving: 0.05 }],
  ['static', '/style.css', { headers: { 'accept-encoding': 'gzip' } }],
  ['static large', '/large.txt', { leaving: 0.3 }],
  ['static range', '/large.txt', { headers: { range: 'bytes=100-299' }, expected: [206] }],
  ['static late range', '/large.txt', { headers: { range: 'bytes=9999999-' }, expected: [416] }],
  ['static fresh', '/style.css', { headers: { 'if-modified-since': 'Fri, 01 Jan 2100 00:00:00 GMT' }, expected: [304] }],
  ['missing', '/nothing/here', { expected: [404] }],
  ['missing', '/..%2f..%2fsvc.json', { expected: [404] }],
  ['wrong method', '/plain', { method: 'DELETE', expected: [405] }],
  ['options', '/plain', { method: 'OPTIONS', expected: [204] }],
  ['fail', '/fail', { expected: [500] }],
  ['refuse', '/refuse', { expected: [422] }],
  ['large', '/large', { leaving: 0.3 }],
  ['large', '/large', { headers: { 'accept-encoding': 'gzip' }, leaving: 0.2 }],
  ['json', '/echo', { body: '{"a":[1,2,{"b":null}]}', headers: json, expected: [201] }],
  ['bad json', '/echo', { body: '{"a":', headers: json, expected: [400] }],
  ['no token', '/token', { expected: [401] }],
  ['wrong token', '/token', { headers: { authorization: 'Bearer a.b.c' }, expected: [401] }],
  ['signed out', '/private', { expected: [302] }],
  ['forged form', '/form', { body: 'text=x', headers: { origin: 'https://elsewhere.example' }, expected: [403] }],
  ['visit', '/visit', { leaving: 0.2 }],
  ['wait', '/wait?ms=20', { leaving: 0.5 }],
  ['wait', '/wait?ms=5', {}],
  ['ready', '/svc-ready', {}],
  ['guarded', '/svc-status', { expected: [302] }],
]

async function askOnce(client: Client): Promise<void> {
  const { random } = client.place
  if (random.integer(25) === 0) return upload(client)
  const [kind, path, question] = random.pick(singles)
  await client.ask(kind, path, question)
}

/** Sends a file that the server puts into a temporary file. */
async function upload(client: Client): Promise<void> {
  const { random, tallies } = client.place
  const size = 100_000 + random.integer(200_000)
  const head = '--b\r\nContent-Disposition: form-data; name="f"; filename="f.bin"\r\n\r\n'
  const body = Buffer.concat([Buffer.from(head), Buffer.alloc(size, 'x'), Buffer.from('\r\n--b--\r\n')])
  const headers = { 'content-type': 'multipart/form-data; boundary=b' }
  const reply = await client.ask('upload', '/upload', { body, headers, leaving: 0.3 })
  if (reply !== undefined && reply.text !== `{"sizes":[${size}]}`) tallies.complain(`upload: it answered ${reply.text}`)
}

/** Opens a form, sends it, finds the message, sends it once more with a wrong token, and mostly stays signed in. */
async function fillForm(client: Client): Promise<void> {
  const { random, tallies } = client.place
  const open = await client.ask('form', '/form')
  const fields = [...(open?.text.matchAll(/name="(_csrf|_resource_id)" value="([^"]+)"/g) ?? [])]
  const hidden = Object.fromEntries(fields.map(([, name = '', value = '']) => [name, value]))
  if (open === undefined) return
  const text = `text ${random.integer(1000)}`
  const send = (question: Record<string, string>, status: number): ReturnType<Client['ask']> =>
    client.ask('form sent', '/form', form({ ...hidden, ...question }, status))
  if ((await send({ text }, 303)) === undefined) return
  const shown = await client.ask('form', '/form')
  if (shown !== undefined && !shown.text.includes(`<p>Saved 42: ${text}</p>`)) {
    tallies.complain(`form: the message "${text}" is not in ${shown.text}`)
  }
  await send({ text, _csrf: 'wrong' }, 403)
  if (random.integer(10) === 0) await client.ask('sign-out', '/leave', form(hidden, 303))
}

function form(fields: Readonly<Record<string, string>>, status: number): Question {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  return { body: new URLSearchParams(fields).toString(), headers, expected: [status] }
}

async function publish(client: Client): Promise<void> {
  await client.ask('publish', '/publish', { method: 'POST', expected: [202] })
  await delay(3)
}

/** Follows the channel by polls and misses nothing, also when it leaves in between. */
async function poll(client: Client): Promise<void> {
  const { tallies } = client.place
  let since = ''
  let last: number | undefined
  for (let times = 0; times < 20; times += 1) {
    const reply = await client.ask('poll', `/poll${since}`, { leaving: 0.3 })
    if (reply === undefined) {
      if (client.place.signal.aborted) return
      continue
    }
    const { events, last_id, gap } = JSON.parse(reply.text) as PollAnswer
    since = `?since=${last_id}`
    if (gap === true) tallies.complain('poll: there is a gap')
    for (const { data } of events) last = follows('poll', client.place, last, data.n)
  }
}

interface PollAnswer {
  readonly events: readonly { readonly data: { readonly n: number } }[]
  readonly last_id: number
  readonly gap?: boolean
}

function follows(kind: string, { tallies }: Place, last: number | undefined, next: number): number {
  if (last !== undefined && next !== last + 1) tallies.complain(`${kind}: event ${next} came after ${last}`)
  return next
}

async function take(client: Client): Promise<void> {
  await client.ask('take', '/take', { leaving: 0.2 })
}

/** Follows the channel by a stream that it leaves and comes back to. */
async function follow(client: Client): Promise<void> {
  const { place } = client
  let id = ''
  let last: number | undefined
  for (let times = 0; times < 5 && !place.signal.aborted; times += 1) {
    let rest = ''
    const enough = 10 + place.random.integer(100)
    let heard = 0
    await client.ask('stream', '/stream', {
      ...(id === '' ? {} : { headers: { 'last-event-id': id } }),
      onPiece: (piece) => {
        const events = (rest + piece).split('\n\n')
        rest = events.pop() ?? ''
        for (const event of events) {
          id = /^id: (.*)$/m.exec(event)?.[1] ?? id
          const n = /^data: \{"n":(\d+)\}$/m.exec(event)?.[1]
          if (n !== undefined) last = follows('stream', place, last, Number(n))
          heard += 1
        }
        return heard < enough
      },
    })
  }
}

/** Says a few things over a WebSocket, hears them again, and ends it well or badly. */
async function talk({ place }: Client): Promise<void> {
  const { random, tallies, signal, port, pace } = place
  await pace.turn(signal)
  const socket = new WebSocketClient(nobody, port)
  const cut = (): void => void socket.socket.destroy()
  signal.addEventListener('abort', cut)
  try {
    socket.socket.write(handshakeText('/socket', ['User-Agent: soak/1 (socket)']))
    const { status } = await socket.answer()
    tallies.answered('socket', status, [101])
    for (let times = random.integer(20); times > 0; times -= 1) {
      const said = 'x'.repeat(random.integer(3000))
      socket.say(said)
      if ((await socket.hear()) !== said) tallies.complain('socket: it echoed something else')
      await delay(random.integer(10))
    }
    if (random.integer(2) === 0) return await socket.reset()
    socket.sendFrames({ opcode: 8, payload: Buffer.from([0x03, 0xe8]) })
    const [code] = await socket.closing()
    if (code !== 1000) tallies.complain(`socket: closed with ${code}`)
  } catch (error) {
    if (!signal.aborted) tallies.complain(`socket: ${String(error)}`)
  } finally {
    signal.removeEventListener('abort', cut)
    cut()
  }
}

/** Bytes that are no good request, with the status that they get. */
const badBytes: readonly (readonly [string, number])[] = [
  ['GARBAGE\r\n\r\n', 400],
  ['GET /plain HTTP/1.1\r\nHost: h\r\nX: \u0000\r\n\r\n', 400],
  [`GET /plain HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ['CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n', 405],
  ['GET /plain HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
  [requestText('POST /echo', [`Content-Length: ${bodyLimitKb * 1024 + 1}`, 'Connection: close'], '{}'), 413],
  [requestText('GET /socket', ['Connection: Upgrade', 'Upgrade: websocket']), 426],
]

async function misbehave({ place }: Client): Promise<void> {
  const { random, tallies, port, signal, pace } = place
  await pace.turn(signal)
  await delay(random.integer(30))
  if (random.integer(3) > 0) {
    const [bytes, status] = random.pick(badBytes)
    const text = await exchange(port, bytes)
    return tallies.answered('bad bytes', text === '' ? 0 : parseAnswer(text).status, [status])
  }
  const connection = new Connection(nobody, port)
  const cut = (): void => void connection.socket.destroy()
  signal.addEventListener('abort', cut)
  if (random.integer(2) === 0) {
    await connection.send('GET /plain HTTP/1.1\r\nHo') // The rest never comes.
    await delay(random.integer(20))
    tallies.left('half a request')
  } else {
    const count = 2 + random.integer(10)
    await connection.send(requestText('GET /plain').repeat(count - 1) + requestText('GET /plain', ['Connection: close']))
    const answers = splitAnswers(await connection.closed())
    for (const { status } of answers) tallies.answered('pipelined', status, [200])
    if (answers.length !== count && !signal.aborted) tallies.complain(`pipelined: ${answers.length} answers to ${count}`)
  }
  signal.removeEventListener('abort', cut)
  cut()
}
