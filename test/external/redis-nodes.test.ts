// Servers that share an engine, and change as one: routes, trace switches, credentials.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { startSeveral } from '../cluster/several.ts'
import { startApplication, type Files } from '../support/application.ts'
import { startRedis } from '../support/redis-server.ts'
import { ask, nodeFiles, post, type Node } from '../support/nodes.ts'

/** Two servers of one process and one of two, on one engine. */
async function startThree(t: TestContext, url: string, files: Files = {}, config: object = {}): Promise<Node[]> {
  const all = { ...nodeFiles, ...files }
  const shared = { 'shared.url': url, 'app.env': 'dev', ...config }
  const one = await startApplication(t, all, shared)
  const two = await startApplication(t, all, shared)
  const several = await startSeveral(t, 2, all, shared)
  return [one, two, several]
}

/** What each node answers. Of a server of several processes, each time the one that takes the connection. */
async function answersOf(nodes: readonly Node[], path: string): Promise<readonly string[]> {
  const asked = nodes.flatMap((node) => [node, node, node])
  const answers = await Promise.all(asked.map(({ url }) => ask(url, path)))
  return [...new Set(answers.map(({ status, text }) => (status === 200 ? text : String(status))))]
}

const route = (name: string, more: object = {}): object => ({ name, url: `/${name}`, action: 'a.mjs@same', ...more })

describe('nodes', () => {
  it('answer as one server: what is added, deleted, reloaded is so on each when that is answered', async (t) => {
    const { url } = await startRedis(t)
    const nodes = await startThree(t, url)
    for (const [at, node] of nodes.entries()) {
      const name = `a${at}`
      assert.equal((await post(node.url, '/svc-routes/add', route(name))).text, `{"ok":true,"name":"${name}"}`)
      assert.deepEqual(await answersOf(nodes, `/${name}`), ['same'])
    }
    for (const [at, node] of nodes.entries()) {
      const other = nodes[(at + 1) % nodes.length] as Node
      assert.equal((await post(other.url, '/svc-routes/delete', { name: `a${at}` })).status, 200)
      assert.deepEqual(await answersOf(nodes, `/a${at}`), ['404'])
      assert.equal((await post(node.url, '/svc-routes/add', route('b'))).status, 200)
      assert.deepEqual(await answersOf(nodes, '/b'), ['same'])
      assert.equal((await ask(other.url, '/svc-routes/reload')).status, 200)
      assert.deepEqual(await answersOf(nodes, '/b'), ['404'])
      assert.deepEqual(await answersOf(nodes, '/file'), ['same'])
    }
  })
})
