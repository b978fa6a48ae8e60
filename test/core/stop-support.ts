// An application whose requests can be blocked, for the tests of the stop, and connections to it.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** `/held` is answered when the test emits the application's event on the process. */
export const files = {
  'routes/a.json': [
    { name: 'ok', url: '/ok', action: 'a.mjs' },
    { name: 'held', url: '/held/:key', action: 'a.mjs@held' },
    { name: 'hangs', url: '/hangs', action: 'a.mjs@hangs' },
    { name: 'big', url: '/big', action: 'a.mjs@big' },
    { name: 'length', url: '/length', action: 'a.mjs@length' },
    { name: 'busy', url: '/busy/:key', action: 'a.mjs@busy' },
  ],
  'a.mjs': `export default () => 'ok'
    export const big = () => 'x'.repeat(32 * 2 ** 20)
    export const busy = ({ params }) => {
      process.emit('go-' + params.key)
      return 'done'
    }
    export const length = async ({ readText, text }) => text(String((await readText()).length))
    export const held = (ctx) => {
      ctx.log('held')
      return new Promise((resolve) => process.once('go-' + ctx.params.key, () => resolve('at last')))
    }
    export const hangs = (ctx) => {
      ctx.log('hangs')
      return new Promise(() => {})
    }`,
}

let count = 0
export const newKey = (): string => `${process.pid}-${(count += 1)}`
export const go = (key: string): boolean => process.emit(`go-${key}` as 'SIGUSR2') // Any name will do, but the types allow only a few.

export const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`

/** Opens a connection that is closed when the test ends. */
export async function open(t: Pick<TestContext, 'after'>, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** Sends a request on a connection and reads what arrives at once. */
export async function requestOn(socket: Socket, path: string): Promise<string> {
  socket.write(ask(path))
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString()
}

/** The log line of a stop that reached its time-out and cut the rest. */
export function cutWarning(lines: readonly string[]): string | undefined {
  return lines.find((line) => line.includes('the stop took longer than'))
}
