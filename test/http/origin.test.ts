import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTrustedOrigin, createOriginCheck, type OriginVerdict } from '../../lib/http/origin.ts'

const trusted = [
  'https://Partner.example:443', 'http://dev.example:3000', 'https://sub.example.org', 'capacitor://localhost', 'chrome-extension://abcdefghijklmnop',
  'tauri://localhost:1420', 'http://ported.example:443',
]

interface Row {
  site?: string
  origin?: string
  referer?: string
  host?: string
  secure?: boolean
  verdict: OriginVerdict
}

const rows: Row[] = [
  { verdict: 'unknown' },
  // Sec-Fetch-Site decides if present.
  { site: 'same-origin', verdict: 'same' },
  { site: 'none', verdict: 'same' },
  { site: 'same-origin', origin: 'https://evil.example', verdict: 'same' },
  { site: 'cross-site', verdict: 'cross' },
  { site: 'cross-site', origin: 'https://example.org', verdict: 'cross' },
  { site: 'cross-site', origin: 'null', verdict: 'cross' },
  { site: 'cross-site', origin: 'https://partner.example', verdict: 'same' },
  { site: 'cross-site', referer: 'https://partner.example/form?a=b', verdict: 'same' },
  { site: 'cross-site', origin: 'null', referer: 'https://partner.example/', verdict: 'cross' },
  { site: 'same-site', verdict: 'cross' },
  { site: 'same-site', origin: 'https://other.example.org', verdict: 'cross' },
  { site: 'same-site', origin: 'https://sub.example.org', verdict: 'same' },
  { site: 'same-site', origin: 'http://sub.example.org', verdict: 'cross' },
  { site: 'same-site', referer: 'https://sub.example.org/page', verdict: 'same' },
  { site: 'same-origin, cross-site', verdict: 'cross' },
  { site: 'SAME-ORIGIN', verdict: 'cross' },
  { site: '', verdict: 'cross' },
  // Then Origin.
  { origin: 'https://example.org', verdict: 'same' },
  { origin: 'HTTPS://EXAMPLE.ORG:443', verdict: 'same' },
  { origin: 'https://example.org', host: 'EXAMPLE.org.:443', verdict: 'same' },
  { origin: 'https://example.org:8443', verdict: 'cross' },
  { origin: 'https://example.org:8443', host: 'example.org:8443', verdict: 'same' },
  { origin: 'https://example.org', host: 'example.org:8443', verdict: 'cross' },
  { origin: 'http://example.org', verdict: 'cross' },
  { origin: 'http://example.org', secure: false, verdict: 'same' },
  { origin: 'http://example.org:80', secure: false, verdict: 'same' },
  { origin: 'https://example.org', secure: false, verdict: 'same' },
  { origin: 'http://[::1]:8080', secure: false, host: '[0::1]:8080', verdict: 'same' },
  { origin: 'https://evil.example', verdict: 'cross' },
  { origin: 'https://example.org.evil.example', verdict: 'cross' },
  { origin: 'https://example.org@evil.example', verdict: 'cross' },
  { origin: 'https://evil.example\\@example.org', verdict: 'cross' },
  { origin: 'https://example.org/', verdict: 'cross' },
  { origin: 'https://example.org, https://evil.example', verdict: 'cross' },
  { origin: 'chrome-extension://example.org', verdict: 'cross' },
  { origin: 'example.org', verdict: 'cross' },
  // An app's origin counts if it is trusted, and is never this host.
  { origin: 'capacitor://localhost', verdict: 'same' },
  { origin: 'CAPACITOR://LOCALHOST', verdict: 'same' },
  { site: 'cross-site', origin: 'capacitor://localhost', verdict: 'same' },
  { referer: 'capacitor://localhost/index.html', verdict: 'same' },
  { origin: 'chrome-extension://abcdefghijklmnop', verdict: 'same' },
  { origin: 'tauri://localhost:1420', verdict: 'same' },
  { origin: 'tauri://localhost', verdict: 'cross' },
  { origin: 'ionic://localhost', verdict: 'cross' },
  { origin: 'capacitor://localhost:80', verdict: 'cross' },
  { origin: 'capacitor://localhost.evil.example', verdict: 'cross' },
  { origin: 'capacitor://localhost@evil.example', verdict: 'cross' },
  { origin: 'https://localhost', verdict: 'cross' },
  { origin: 'http://ported.example', verdict: 'cross' },
  { origin: 'capacitor://example.org', secure: false, verdict: 'cross' },
  { origin: 'ws://example.org', secure: false, verdict: 'cross' },
  { referer: 'capacitor://example.org/', secure: false, verdict: 'cross' },
  { origin: '', verdict: 'cross' },
  { origin: 'https://example.org', host: '', verdict: 'cross' },
  { origin: 'null', verdict: 'unknown' },
  { origin: 'null', referer: 'https://evil.example/', verdict: 'unknown' },
  { origin: 'https://partner.example', verdict: 'same' },
  { origin: 'http://partner.example', verdict: 'cross' },
  { origin: 'http://dev.example:3000', verdict: 'same' },
  { origin: 'http://dev.example', verdict: 'cross' },
  { origin: 'https://evil.example', referer: 'https://example.org/', verdict: 'cross' },
  // Then Referer.
  { referer: 'https://example.org', verdict: 'same' },
  { referer: 'https://example.org/form?next=https://evil.example', verdict: 'same' },
  { referer: 'https://evil.example/https://example.org/', verdict: 'cross' },
  { referer: 'https://evil.example?https://example.org/', verdict: 'cross' },
  { referer: 'https://evil.example#@example.org', verdict: 'cross' },
  { referer: 'http://dev.example:3000/x', verdict: 'same' },
  { referer: 'about:blank', verdict: 'cross' },
  { referer: '', verdict: 'cross' },
]

for (const { verdict, ...row } of rows) {
  test(`is ${verdict} for ${JSON.stringify(row)}`, () => {
    const headers: Record<string, string | undefined> = { 'sec-fetch-site': row.site, origin: row.origin,
      referer: row.referer }
    const check = createOriginCheck(trusted)
    const header = (name: string): string | undefined => headers[name]
    assert.equal(check({ header, secure: row.secure ?? true, host: row.host ?? 'example.org' }), verdict)
  })
}

for (const entry of ['', 'null', '*', 'example.org', 'https://', 'https://a/', 'https://a/path', 'ftp://a', 'wss://a', 'file://',
  'capacitor://', 'capacitor:localhost', 'capacitor://localhost/', '1a://localhost', 'a b://localhost', '://localhost',
  'https://a b', 'https://a:x', 'https://u@a']) {
  test(`refuses ${JSON.stringify(entry)} as a trusted origin`, () => {
    assert.match(checkTrustedOrigin(entry) ?? '', /^must be the origin of a page or app, such as https:/)
  })
}

test('accepts origins with and without a port, and those of apps and extensions', () => {
  const apps = [
    'ionic://localhost', 'app://obsidian.md', 'moz-extension://8a2c0f9e-1f5e-4a0b-9a51-1b7a2c7d3e4f', 'safari-web-extension://8A2C0F9E',
    'vscode-webview://1nbqsmrlfqk5m7j0e6d8', 'com.example.app://localhost',
  ]
  for (const entry of [...trusted, ...apps]) assert.equal(checkTrustedOrigin(entry), undefined, entry)
})
