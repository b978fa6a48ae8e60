// The bare server of the streams' benchmark: `node --expose-gc stream-bare.js` prints the port it listens on. It keeps
// what waits in arrays of (request, response) and answers all of them with one body, in the turn of the publishing.
// It answers the paths of the application in support/stream-rivals.ts with the same header fields and bytes.
import { createServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

const type = 'application/json; charset=utf-8'
const data = { text: 'The harbour is closed until noon', by: 'Ada' }
const all = []
const one = []
let asked = 0
let id = Date.now() * 1000

const answers = {
  '/poll': (request, response) => hold(all, request, response),
  '/lone': (request, response) => hold(one, request, response),
  '/publish': (request, response) => publish(all, response),
  '/notify': (request, response) => publish(one, response),
  '/plain': (request, response) => answer(response, '{"ok":true}'),
  '/asked': (request, response) => answer(response, `{"asked":${asked}}`),
  '/cursor': (request, response) => answer(response, `{"cursor":${id}}`),
  '/collect': async (request, response) => {
    for (let times = 0; times < 4; times += 1) {
      globalThis.gc()
      await delay(50)
    }
    answer(response, '{"ok":true}')
  },
}

const server = createServer((request, response) => {
  const at = request.url.indexOf('?')
  answers[at < 0 ? request.url : request.url.slice(0, at)](request, response)
})
server.keepAliveTimeout = 65_000
server.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`))

function hold(waiting, request, response) {
  asked += 1
  waiting.push([request, response])
}

function publish(waiting, response) {
  id += 1
  const body = JSON.stringify({ events: [{ id, data }], last_id: id })
  const length = String(Buffer.byteLength(body))
  const headers = ['Content-Type', type, 'Cache-Control', 'no-store', 'Content-Length', length]
  for (const [, held] of waiting.splice(0)) held.writeHead(200, headers).end(body)
  answer(response, '{"ok":true}')
}

function answer(response, body) {
  response.writeHead(200, ['Content-Type', type, 'Content-Length', String(Buffer.byteLength(body))])
  response.end(body)
}
