// Loaded with `--import` into the server that is soaked: answers a message with what the process holds after a collection
// of garbage. It is JavaScript, so that every Node loads it as it is, and no part of the server.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import v8 from 'node:v8'

const timer = setTimeout(() => {}, 0)
const Timeout = timer.constructor
clearTimeout(timer)

/** Classes whose instances are counted; each has those of its subclasses too. */
const counted = {
  timers: Timeout,
  sockets: Socket,
  requests: IncomingMessage,
  responses: ServerResponse,
  signals: AbortSignal,
}

process.on('message', async () => {
  for (let turn = 0; turn < 4; turn += 1) {
    globalThis.gc()
    await setImmediate()
  }
  const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage()
  const handles = {}
  for (const name of process.getActiveResourcesInfo()) handles[name] = (handles[name] ?? 0) + 1
  const objects = {}
  for (const [name, type] of Object.entries(counted)) objects[name] = v8.queryObjects(type, { format: 'count' })
  process.send({ rss, heapUsed, external, arrayBuffers, handles, objects })
})
process.channel.unref() // The server alone decides when the process ends.
