import type { TestContext } from 'node:test'
import { startApplication, type TestApplication } from './application.ts'

/**
 * Starts an application whose actions are given as source text.
 * @param actions by `/path` or `METHOD /path`; the route of the first is named `r0`, of the second `r1`
 */
export function serve(
  t: Pick<TestContext, 'after'>,
  actions: Readonly<Record<string, string>>,
  config: Readonly<Record<string, unknown>> = {},
  files: Readonly<Record<string, unknown>> = {},
): Promise<TestApplication> {
  const routes = Object.keys(actions).map((key, at) => {
    const [path = '', method = '*'] = key.split(' ').reverse()
    return { name: `r${at}`, url: path, method, scope: 'test:read', action: `actions.mjs@r${at}` }
  })
  const source = Object.values(actions).map((text, at) => `export const r${at} = ${text}\n`)
  return startApplication(t, { 'routes/r.json': routes, 'actions.mjs': source.join(''), ...files }, config)
}
