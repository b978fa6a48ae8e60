/** The suite that each proxy of docs/deploy passes with three nodes behind it. */
import { describe, it, type TestContext } from 'node:test'
import { startNodes, type Nodes, type NodeKind } from '../support/nodes.ts'
import type { Proxy } from '../support/proxies.ts'
import * as holds from './in-front.ts'
import { losesLittleToKills, losesNothingToStops } from './in-front-load.ts'

export interface ProxyUnderTest {
  readonly name: string
  start(t: TestContext, ports: readonly number[]): Promise<Proxy>
  /** The nodes of which it must lose nothing. */
  readonly kind: NodeKind
  /** How long these serve on when they stop. */
  readonly drainDelayS: number
  /** How often each of them is stopped and started. */
  readonly rounds: number
}

/** Declares the tests. */
export function testInFront({ name, start, kind, drainDelayS, rounds }: ProxyUnderTest): void {
  const begin = async (t: TestContext, of = kind, config = {}): Promise<{ proxy: Proxy; nodes: Nodes }> => {
    const nodes = await startNodes(t, of, config)
    const proxy = await start(t, nodes.nodes.map(({ port }) => port))
    await holds.allServe(proxy, nodes.pids)
    return { proxy, nodes }
  }

  describe(`${name} in front of several nodes`, () => {
    it('tells them who asks, refuses what they would, and keeps the panel to this machine', async (t) => {
      const { proxy } = await begin(t)
      await holds.tellsWhoAsks(proxy)
      await holds.limitsBodies(proxy)
      await holds.hidesThePanel(proxy)
    })

    it('lets polls, streams and WebSockets through, and ends what its client left', async (t) => {
      const { proxy, nodes } = await begin(t)
      await holds.letsThroughWhatWaits(t, proxy, nodes.nodes)
      await holds.endsWhatIsLeft(proxy, nodes.nodes)
    })

    it('sends no POST again that has been sent', async (t) => {
      const { ports, posts } = await holds.startBreaking(t, 3)
      await holds.sendsAPostOnce(t, await start(t, ports), posts)
    })

    it('gives to another node what one refuses', async (t) => {
      const { proxy, nodes } = await begin(t, 'plain')
      await holds.goesToTheNext(proxy, nodes)
    })

    it('goes on while the engine is away', async (t) => {
      const { proxy, nodes } = await begin(t)
      await holds.goesOnWithoutTheEngine(t, proxy, nodes)
    })

    it('loses no request while each node is stopped and started', async (t) => {
      const { proxy, nodes } = await begin(t, kind, { 'server.drain_delay_s': drainDelayS })
      await losesNothingToStops(t, proxy, nodes, rounds)
    })

    it('loses to a killed node what was under way there and must not be sent twice', async (t) => {
      const { proxy, nodes } = await begin(t)
      await losesLittleToKills(t, proxy, nodes)
    })
  })
}
