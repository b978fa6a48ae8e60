import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { Redis, type RedisOptions } from '../../lib/redis/client.ts'
import { listIn, textIn } from '../../lib/redis/reply.ts'
import { ReplyParser } from '../../lib/redis/resp.ts'
import { parseRedisUrl } from '../../lib/config/redis-url.ts'

/** Returns the bytes of the reply to a command; undefined: no reply. */
export type Answer = (command: string, socket: Socket) => string | undefined

/** Answers the sign-in as a master does. */
const greeting: Readonly<Record<string, string>> = {
  'CLIENT SETNAME test': '+OK\r\n',
  PING: '+PONG\r\n',
  ROLE: '*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n',
}

/**
 * Starts a server that sends what a real one hardly would, and a client of it. Both end with the test.
 * @param onConnection called with each new connection
 * @param answer answers each command, its words joined by spaces; other sign-in commands get the usual reply
 */
export async function openFake(
  t: Pick<TestContext, 'after'>,
  answer: Answer,
  options: Partial<RedisOptions> & { readonly account?: string } = {},
  onConnection: (socket: Socket) => unknown = () => {},
): Promise<{ redis: Redis; commands: string[] }> {
  const commands: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    onConnection(socket)
    socket.on('error', () => {}) // A client that leaves is what some tests are about.
    const parser = new ReplyParser((reply) => {
      const command = listIn(reply).map(textIn).join(' ')
      commands.push(command)
      const bytes = answer(command, socket) ?? greeting[command]
      if (bytes !== undefined && socket.writable) socket.write(bytes)
    })
    socket.on('data', (chunk: Buffer) => parser.read(chunk))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // It listens on a port.
  const { account = '', ...rest } = options
  const target = parseRedisUrl(`redis://${account}127.0.0.1:${port}`)
  const redis = new Redis({ target, name: 'test', connectTimeoutMs: 60_000, commandTimeoutMs: 60_000, ...rest })
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await redis.close()
  })
  return { redis, commands }
}
