// WebSockets as a browser opens them.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { startApplication } from '../support/application.ts'
import { openPage } from '../support/browser.ts'

const files = {
  'routes/r.json': ['page', 'chat', 'plain'].map((name) => ({
    ...{ name, url: `/${name}`, method: 'GET', scope: '' },
    action: name === 'page' ? 'page.html' : `${name}.mjs`,
  })),
  'page.html': '<!doctype html><title>Page</title>',
  'chat.mjs': "export const websocket = { protocols: ['chat.v2', 'chat'], open: (ws) => ws.send(ws.protocol) }",
  'plain.mjs': "export const websocket = { open: (ws) => ws.send('plain') }",
}

/** What a page receives of a WebSocket: its protocol with the first message, or its close code. */
async function outcome(t: TestContext, path: string, protocols: readonly string[]): Promise<unknown> {
  const page = await openPage(t)
  const { url } = await startApplication(t, files)
  await page.open(`${url}/page`)
  return page.evaluate(`new Promise((resolve) => {
    const socket = new WebSocket('${url.replace('http', 'ws')}${path}', ${JSON.stringify(protocols)})
    socket.onmessage = ({ data }) => resolve([socket.protocol, data])
    socket.onclose = ({ code }) => resolve(code)
  })`)
}

describe('a WebSocket of a page', () => {
  for (const [path, protocols, expected] of [
    ['/chat', ['chat'], ['chat', 'chat']],
    ['/chat', ['other', 'chat', 'chat.v2'], ['chat.v2', 'chat.v2']],
    ['/chat', [], ['', '']],
    ['/plain', [], ['', 'plain']],
    ['/chat', ['other'], 1006],
    ['/plain', ['chat'], 1006],
  ] as const) {
    const ends = typeof expected === 'number' ? `is closed with ${expected}` : `opens with protocol "${expected[0]}"`
    it(`that offers ${JSON.stringify(protocols)} to ${path} ${ends}`, async (t) => {
      assert.deepEqual(await outcome(t, path, protocols), expected)
    })
  }
})
