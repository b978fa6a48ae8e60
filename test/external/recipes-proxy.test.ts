// docs/recipes/proxy.md: both configurations, with their own programs, in front of a server.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { launch } from '../support/launch.ts'
import { shownFiles } from '../support/markdown.ts'
import { nodeApplication } from '../support/nodes.ts'
import { startCaddy, startNginxSite, type Proxy } from '../support/proxies.ts'
import { recipePage } from '../support/recipe.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import * as holds from './in-front.ts'

const page = recipePage('proxy')
const shown = (language: string): string => page.blocks.find((block) => block.language === language)?.text ?? ''
const { server } = JSON.parse(shownFiles(page)['svc.json'] ?? '') as { server: { trusted_proxies: string[] } }

/** A server as the page configures it, but in `dev`, so that its status can be read. */
async function startServer(t: TestContext): Promise<{ port: number; pid: number }> {
  const config = { 'app.env': 'dev', 'server.allowed_hosts': ['127.0.0.1'], 'server.trusted_proxies': server.trusted_proxies }
  const login = [{ name: 'login', url: '/login', action: 'home.mjs' }]
  const files = { ...holds.tokenPage, ...nodeApplication(join(temporaryFolder(), 'notes')), 'routes/login.json': login }
  const launched = launch(t, [], { cwd: applicationFolder(files, config) })
  return { port: Number(new URL(await launched.listening()).port), pid: launched.child.pid ?? 0 }
}

const here = (text: string, port: number): string => text.replace('127.0.0.1:8080', `127.0.0.1:${port}`)
const caddy = (t: TestContext, port: number): Promise<Proxy> => startCaddy(t, here(shown('caddy'), port))
const nginx = (t: TestContext, port: number): Promise<Proxy> => startNginxSite(t, here(shown('nginx'), port))
const proxies = { caddy, nginx }

async function begin(t: TestContext, start: (t: TestContext, port: number) => Promise<Proxy>) {
  const node = await startServer(t)
  const proxy = await start(t, node.port)
  await holds.allServe(proxy, [node.pid])
  return { proxy, node }
}

for (const [name, start] of Object.entries(proxies)) {
  describe(`${name} as docs/recipes/proxy.md has it`, () => {
    it('tells who asks, limits bodies, and keeps the panel to this machine', async (t) => {
      const { proxy } = await begin(t, start)
      await holds.tellsWhoAsks(proxy)
      await holds.limitsBodies(proxy)
      await holds.leavesTokensUncompressed(proxy)
      await holds.hidesThePanel(proxy)
    })

    it('lets polls, streams and WebSockets through, and ends what its client left', async (t) => {
      const { proxy, node } = await begin(t, start)
      await holds.letsThroughWhatWaits(t, proxy, [node])
      await holds.endsWhatIsLeft(proxy, [node])
    })
  })
}

it('nginx as docs/recipes/proxy.md has it limits how often an address may sign in', async (t) => {
  const { proxy } = await begin(t, nginx)
  const statuses: number[] = []
  for (let count = 0; count < 20; count += 1) statuses.push((await holds.ask(`${proxy.url}/login`, {}, 'a=b')).status)
  assert.deepEqual([statuses[0], statuses.at(-1)], [200, 503])
})
