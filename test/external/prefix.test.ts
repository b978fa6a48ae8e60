// docs/recipes/proxy.md, "Below a path": the whole panel through nginx, HAProxy and Caddy with the lines of the page.
import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { useThePanelBelow, type Browse } from '../panel/below-prefix.ts'
import { cookieOf, greeting, nowSeconds, startPanel } from '../panel/panel-server.ts'
import { startCaddy, startHaproxyText, startNginxSite, type Proxy } from '../support/proxies.ts'
import { recipePage } from '../support/recipe.ts'
import { until } from '../support/until.ts'
import { ask } from './in-front.ts'

const { blocks } = recipePage('proxy')
/** The block of "Below a path" for a proxy. */
const shown = (language: string): string =>
  blocks.find((block) => block.language === language && /X-Forwarded-Prefix/i.test(block.text))?.text ?? ''
const here = (text: string, port: number): string => text.replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)

const proxies: Readonly<Record<string, (t: TestContext, port: number) => Promise<Proxy>>> = {
  nginx: (t, port) =>
    startNginxSite(t, `server { listen 443 ssl;\nssl_certificate x;\nssl_certificate_key x;\n${here(shown('nginx'), port)}}`),
  HAProxy: (t, port) =>
    startHaproxyText(t, `defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend site
    bind :443 ssl crt /etc/haproxy/svc.pem
    use_backend app if { path_beg /app/ }
${here(shown('haproxy'), port)}`),
  Caddy: (t, port) => startCaddy(t, `www.example.org {\n${here(shown('caddy'), port).replace(/^/gm, '\t').trimEnd()}\n}\n`),
}

const browserOf = ({ url }: Proxy): Browse => async (path, cookie, form) => {
  const type = form && { 'content-type': 'application/x-www-form-urlencoded', origin: url }
  const body = form && new URLSearchParams(form).toString()
  const { status, headers, body: text } = await ask(url + path, { headers: { cookie, ...type } }, body)
  return { status, text, location: String(headers['location'] ?? ''), cookies: (headers['set-cookie'] as string[] | undefined) ?? [] }
}

for (const [name, start] of Object.entries(proxies)) {
  it(`${name} serves the whole panel below its path`, async (t) => {
    const server = await startPanel(t, { 'server.trusted_proxies': ['127.0.0.1'] }, greeting)
    const proxy = await start(t, server.port)
    const browse = browserOf(proxy)
    await until(async () => {
      proxy.check()
      return (await browse('/app/svc-ping', '').catch(() => undefined))?.status === 200
    })
    const seen = await useThePanelBelow('/app', browse)
    assert.ok(seen.includes('/svc-routes/diff'), 'pages behind the navigation too')
    // What a client says of the prefix does not count.
    const { headers } = await ask(`${proxy.url}/app/svc-status`, { headers: { 'X-Forwarded-Prefix': '/evil' } })
    assert.equal(headers['location'], '/app/svc-login?next=/svc-status')
    const twice = await browse('/app/app/svc-status', cookieOf(nowSeconds()))
    assert.equal(twice.status, 404)
  })
}

it('nginx that passes the path as it is serves the whole panel with server.prefix', async (t) => {
  const server = await startPanel(t, { 'server.trusted_proxies': ['127.0.0.1'], 'server.prefix': '/app' }, greeting)
  const location = `location /app/ { proxy_pass http://127.0.0.1:${server.port}; proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto https; }`
  const proxy = await startNginxSite(t, `server { listen 443 ssl;\nssl_certificate x;\nssl_certificate_key x;\n${location}\n}`)
  const browse = browserOf(proxy)
  await until(async () => (await browse('/app/svc-ping', '').catch(() => undefined))?.status === 200)
  await useThePanelBelow('/app', browse)
})
