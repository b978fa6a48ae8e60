// The starter and the demo, judged by the rules of a header scan (those of Mozilla's HTTP Observatory, version 2).
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { initApplication } from '../../lib/commands/init.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { createApp } from '../support/app.ts'
import { startBoard } from '../support/board.ts'
import { request, type Answer } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const https = { headers: { 'x-forwarded-proto': 'https' } }
const sixMonthsS = 15_768_000

/** The values of a directive, or of its fallback if it is absent. */
function sources(policy: string, name: string, other = 'default-src'): readonly string[] | undefined {
  const directives = policy.split(';').map((text) => text.trim().split(/\s+/))
  const found = (wanted: string): readonly string[] | undefined => directives.find(([first]) => first === wanted)?.slice(1)
  return found(name) ?? found(other)
}

/** The rules of a scan that lower the score, and whether a response breaks them. */
const rules: readonly (readonly [rule: string, isBroken: (answer: Answer, policy: string) => boolean])[] = [
  ['there is a policy', (_, policy) => policy === ''],
  ['no inline scripts without a nonce', (_, policy) => sources(policy, 'script-src')?.includes("'unsafe-inline'") ?? true],
  ['no inline styles without a nonce', (_, policy) => sources(policy, 'style-src')?.includes("'unsafe-inline'") ?? true],
  ['no eval', (_, policy) => sources(policy, 'script-src')?.includes("'unsafe-eval'") ?? true],
  ['no scheme or * as a source', (_, policy) => /(?:^|\s)(?:\*|https?:|data:|ftp:)(?=[\s;]|$)/.test(policy)],
  ['plugins are off', (_, policy) => sources(policy, 'object-src')?.join() !== "'none'"],
  ['a base address cannot be changed', (_, policy) => !["'none'", "'self'"].includes(sources(policy, 'base-uri', '')?.join() ?? '')],
  ['forms lead to this site', (_, policy) => !["'none'", "'self'"].includes(sources(policy, 'form-action', '')?.join() ?? '')],
  ['no frame of another site', ({ headers }, policy) => sources(policy, 'frame-ancestors', '')?.join() !== "'none'" && headers['x-frame-options'] !== 'DENY'],
  ['nosniff', ({ headers }) => headers['x-content-type-options'] !== 'nosniff'],
  ['a private referrer', ({ headers }) => !/^(?:no-referrer|same-origin|strict-origin|strict-origin-when-cross-origin)$/.test(String(headers['referrer-policy']))],
  ['HTTPS for six months', ({ headers }) => Number(/^max-age=(\d+)/.exec(headers['strict-transport-security'] ?? '')?.[1] ?? 0) < sixMonthsS],
  ['a resource policy', ({ headers }) => !/^same-(?:origin|site)$/.test(String(headers['cross-origin-resource-policy']))],
  ['no universal CORS', ({ headers }) => headers['access-control-allow-origin'] !== undefined],
  ['cookies are Secure, HttpOnly and SameSite', ({ headers }) => (headers['set-cookie'] ?? []).some((cookie) => !/; Secure\b/.test(cookie) || !/; HttpOnly\b/.test(cookie) || !/; SameSite=(?:Lax|Strict)\b/.test(cookie))],
  ['scripts are of this origin', ({ text }) => /<script[^>]+src="(?!\/[^/])/.test(text)],
]

/** The rules that a response breaks. */
function findings(answer: Answer): string[] {
  const policy = String(answer.headers['content-security-policy'] ?? '')
  return rules.filter(([, isBroken]) => isBroken(answer, policy)).map(([rule]) => rule)
}

/** Starts the application that `init` makes, behind a proxy that terminates TLS, with HSTS. */
async function startStarter(t: TestContext): Promise<string> {
  const folder = temporaryFolder()
  initApplication(folder)
  const loaded = loadConfig(join(folder, 'svc.json'))
  const app = createApp({ loaded: { ...loaded, config: { ...loaded.config, 'server.port': 0, 'log.console': false, 'server.trusted_proxies': ['127.0.0.1'] } } })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  return (await app.start()).url
}

describe('a scan of the header fields', () => {
  it('finds nothing in the starter except that HSTS is off', async (t) => {
    const url = await startStarter(t)
    for (const path of ['/', '/hello/world']) {
      assert.deepEqual(findings(await request(url + path, https)), ['HTTPS for six months'], path)
    }
  })

  it('finds nothing in the demo with hsts_s, on pages, files, errors and responses with a cookie', async (t) => {
    const { url, write, folder, app } = await startBoard(t, { 'server.trusted_proxies': ['127.0.0.1'] })
    const file = 'routes/middleware/config.json'
    const middleware = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { setup: object }
    write({ [file]: { ...middleware, setup: { ...middleware.setup, headers: { hsts_s: 31_536_000 } } } })
    await app.control.apply({ type: 'routes.reload' })
    for (const path of ['/', '/tour', '/sign-in', '/sign-up', '/api/notices', '/board.css', '/board.js', '/nowhere', '/notices/99']) {
      assert.deepEqual(findings(await request(url + path, https)), [], path)
    }
    assert.notEqual((await request(url, https)).headers['set-cookie'], undefined)
  })

  it('finds every problem in a response without the fields', async () => {
    const bare = { headers: { 'set-cookie': ['a=b'], 'access-control-allow-origin': '*' }, text: '<script src="//x"></script>' }
    const found = findings(bare as unknown as Answer) // The members that the rules read.
    assert.deepEqual(rules.map(([rule]) => rule).filter((rule) => !found.includes(rule)), ['no scheme or * as a source'])
  })
})
