/** A real server whose handler gets a `Body`, for the tests of bodies and forms. Closed when the test ends. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { readdirSync, readlinkSync } from 'node:fs'
import type { TestContext } from 'node:test'

import { explainJson } from '../../lib/json/json-map.ts'
import { Body, type BodyOptions } from '../../lib/http/body.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { listen } from '../support/listen.ts'

/** The outcome of the handler for one request. */
export interface Outcome {
  readonly value?: unknown
  readonly error?: unknown
}

/** A server under test. */
export interface BodyServer {
  readonly port: number
  readonly url: string
  /** Returns the outcome of the next request that ends. */
  next(): Promise<Outcome>
  /** Opens a raw connection to it. */
  connect(): Promise<Socket>
}

/** Starts a server. `handle` processes the body; its value is answered as JSON, its HttpError as status and JSON. */
export async function serveBody(
  t: TestContext,
  options: Partial<BodyOptions>,
  handle: (body: Body, request: IncomingMessage) => unknown,
): Promise<BodyServer> {
  const outcomes: Outcome[] = []
  const waiting: Array<(outcome: Outcome) => void> = []
  const server = createServer((request, response) => {
    const body = new Body(request, { maxBytes: 1_048_576, explainJson, ...options })
    const closed = once(response, 'close')
    void run()

    async function run(): Promise<void> {
      let outcome: Outcome
      try {
        outcome = { value: await handle(body, request) }
      } catch (error) {
        outcome = { error }
      }
      const { error } = outcome
      const status = error instanceof HttpError ? error.status : error === undefined ? 200 : 500
      const text = error instanceof HttpError ? error.code : error
      response.writeHead(status, {
        'Content-Type': 'application/json',
        ...(body.consumed ? {} : { Connection: 'close' }),
      })
      response.end(JSON.stringify(error === undefined ? (outcome.value ?? null) : { error: String(text) }))
      await closed
      await body.dispose()
      const receiver = waiting.shift()
      if (receiver === undefined) outcomes.push(outcome)
      else receiver(outcome)
    }
  })
  server.on('checkContinue', (request, response) => {
    server.emit('request', request, response)
  })
  const sockets: Socket[] = []
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  const port = await listen(t, server)
  return {
    port,
    url: `http://127.0.0.1:${port}/`,
    next: () => {
      const outcome = outcomes.shift()
      return outcome === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(outcome)
    },
    connect: async () => {
      const socket = connect(port, '127.0.0.1')
      sockets.push(socket)
      await once(socket, 'connect')
      return socket
    },
  }
}

/** Returns everything received until the other side closes, as text. */
export async function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer) // no encoding is set, so chunks are buffers
  return Buffer.concat(chunks).toString('latin1')
}

/** Builds a multipart body. A part is its header lines and its data. */
export function multipart(boundary: string, parts: ReadonlyArray<readonly [string, string | Buffer]>): Buffer {
  const pieces = parts.flatMap(([header, data]) => [
    Buffer.from(`--${boundary}\r\n${header}\r\n\r\n`),
    typeof data === 'string' ? Buffer.from(data) : data,
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)])
}

/** Asserts that a folder is empty and that this process has no open descriptor in it. */
export function assertNoLeftovers(folder: string): void {
  assert.deepEqual(readdirSync(folder), [])
  const open = readdirSync('/proc/self/fd').map((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`)
    } catch {
      return ''
    }
  })
  assert.deepEqual(
    open.filter((target) => target.startsWith(folder)),
    [],
  )
}

/** Asserts that a promise rejects with an HttpError of this status and code. Returns the error. */
export async function rejectsWith(promise: Promise<unknown>, status: number, code: string): Promise<HttpError> {
  const error = await promise.then(
    () => assert.fail('it must not succeed'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof HttpError, `not an HttpError: ${String(error)}`)
  assert.deepEqual([error.status, error.code], [status, code])
  return error
}
