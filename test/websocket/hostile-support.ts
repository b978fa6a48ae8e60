// An echo server for misbehaving clients, and a check that they leave nothing behind.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { FullContext } from '../support/context.ts'
import type { WebSocketHandlers } from '../../lib/websocket/connection.ts'
import type { TestApplication } from '../support/application.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { echo, serveRoutes } from '../support/websocket.ts'

interface WebSocketStatus {
  readonly workers: number
  readonly active: number
  readonly refused: number
  readonly slow: number
}

/** A server with an echo at `/ws`; `clean` checks that no WebSocket is left. */
export async function serveEcho(
  t: TestContext,
  config: Readonly<Record<string, unknown>> = {},
  handlers: WebSocketHandlers<FullContext> = echo,
): Promise<TestApplication & { readonly status: () => Promise<WebSocketStatus>; readonly clean: () => Promise<void> }> {
  const application = await serveRoutes(t, { '/ws': { handlers } }, { 'app.env': 'dev', ...config })
  const read = async () => {
    return (await request(`${application.url}/svc-status`)).json() as {
      pool_ws: WebSocketStatus
      connections: { active: number }
      requests: { active: number }
    }
  }
  const clean = async (): Promise<void> => {
    await until(async () => (await read()).pool_ws.active === 0)
    await until(async () => (await read()).connections.active === 1)
    assert.equal((await read()).requests.active, 1)
    assert.deepEqual(application.lines().filter((line) => /\[(ERROR|FATAL)\]/.test(line)), [])
  }
  return Object.assign(application, { status: async () => (await read()).pool_ws, clean })
}
