/** Two Redis servers, one a replica of the other, and a name that leads to one of them. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { startRedis, type RedisServer } from './redis-server.ts'
import { until } from './until.ts'

type Owner = Pick<TestContext, 'after'>

export interface EngineName {
  /** The port of 127.0.0.1 that stands for the name. */
  readonly port: number
  /** The port to which new connections go. */
  to: number
}

/** Starts a name of the engine: new connections go where it leads at that moment, open ones stay. */
export async function startName(t: Owner, first: RedisServer): Promise<EngineName> {
  const name = { port: 0, to: first.port }
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const engine = connect(name.to, '127.0.0.1')
    for (const socket of [client, engine]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => [client, engine].forEach((each) => each.destroy()))
    }
    client.pipe(engine).pipe(client)
  }).listen(0, '127.0.0.1')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await once(server, 'listening')
  name.port = (server.address() as AddressInfo).port
  return name
}

/** Two servers, the second a replica of the first that is as far as it. */
export async function startPair(t: Owner, args: readonly string[] = []): Promise<readonly [RedisServer, RedisServer]> {
  const pair = [await startRedis(t, { tcp: true, args }), await startRedis(t, { tcp: true, args })] as const
  await pair[1].ask('REPLICAOF', '127.0.0.1', `${pair[0].port}`)
  await isReplicating(pair[1])
  return pair
}

/** Resolves when a replica is as far as its master. */
export function isReplicating(replica: RedisServer): Promise<void> {
  return until(async () => (await replica.ask('INFO', 'replication')).includes('master_link_status:up'))
}

/** Makes the replica the master without losing anything, and lets the name lead there. */
export async function failOver(master: RedisServer, replica: RedisServer, name: EngineName): Promise<void> {
  await isReplicating(replica)
  await until(async () => (await master.ask('FAILOVER')) === 'OK') // It may not know its replica yet.
  await until(async () => (await replica.ask('ROLE')).startsWith('master'))
  name.to = replica.port
}
