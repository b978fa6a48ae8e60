import { it } from 'node:test'
import { presenceFiles, runPresence } from '../live/presence-world.ts'
import { startApplication } from '../support/application.ts'
import { startRedis } from '../support/redis-server.ts'

it('members on three nodes are known on all', async (t) => {
  const { url } = await startRedis(t)
  const nodes: string[] = []
  while (nodes.length < 3) nodes.push((await startApplication(t, presenceFiles, { 'shared.url': url })).url)
  await runPresence(t, nodes, 300)
})
