/** What an administrator does below a prefix, for the tests with a proxy. */
import assert from 'node:assert/strict'
import { password, user } from './panel-server.ts'

/** A response, as an administrator's browser sees it. */
interface Seen {
  readonly status: number
  readonly location: string
  readonly cookies: readonly string[]
  readonly text: string
}

/** Sends a request with a path as the browser sees it, and a form if there is one. */
export type Browse = (path: string, cookie: string, form?: Readonly<Record<string, string>>) => Promise<Seen>

/** What a link may lead to that is no page below the prefix. */
const isElsewhere = (address: string): boolean => /^(?:#|data:)/.test(address)

/** Returns the addresses of a page's links and forms. */
export function addressesOf(html: string): { readonly links: readonly string[]; readonly forms: readonly string[] } {
  const of = (pattern: RegExp): string[] =>
    [...html.matchAll(pattern)].map(([, address = '']) => address.replaceAll('&amp;', '&')).filter((address) => !isElsewhere(address))
  return { links: of(/\bhref="([^"]*)"/g), forms: of(/\baction="([^"]*)"/g) }
}

/**
 * Signs in, follows every link of every page, sends a form and signs out, all below the prefix.
 * @returns the pages seen, without the prefix
 */
export async function useThePanelBelow(prefix: string, browse: Browse): Promise<readonly string[]> {
  const first = await browse(`${prefix}/svc-monitor`, '')
  assert.deepEqual([first.status, first.location], [302, `${prefix}/svc-login?next=/svc-monitor`])
  const login = await browse(first.location, '')
  assert.deepEqual(addressesOf(login.text).forms, [`${prefix}/svc-login`])
  const next = /name="next" value="([^"]*)"/.exec(login.text)?.[1] ?? ''
  const signedIn = await browse(`${prefix}/svc-login`, '', { user, password, next })
  assert.deepEqual([signedIn.status, signedIn.location], [302, `${prefix}/svc-monitor`])
  const cookie = signedIn.cookies[0]?.split(';')[0] ?? ''

  const seen = new Set<string>()
  const waiting = [signedIn.location]
  for (let address = waiting.pop(); address !== undefined; address = waiting.pop()) {
    assert.ok(address.startsWith(`${prefix}/`), `${address} is below the prefix`)
    if (seen.has(address) || /\/svc-(?:stop|logout|slow|cache-clear|bench|routes\/(?:reload|match))/.test(address)) continue
    seen.add(address)
    const { status, text, location } = await browse(address, cookie)
    if (status === 302) waiting.push(location)
    else assert.equal(status, 200, address)
    const { links, forms } = addressesOf(text)
    for (const form of forms) assert.ok(form.startsWith(`${prefix}/svc-`), `the form ${form} of ${address}`)
    if (address.includes('/svc-')) waiting.push(...links)
  }

  const cleared = await browse(`${prefix}/svc-errors/clear`, cookie, { page: '1' })
  assert.deepEqual([cleared.status, cleared.location], [303, `${prefix}/svc-errors`])
  const result = cleared.cookies.find((each) => each.startsWith('svc_result=')) ?? ''
  assert.match(result, new RegExp(`; Path=${prefix}/svc-errors;`))
  const after = await browse(`${prefix}/svc-errors`, `${cookie}; ${result.split(';')[0]}`)
  assert.match(after.text, /All errors cleared\./)
  assert.ok(after.cookies.some((each) => /^svc_result=;/.test(each) && each.includes(`Path=${prefix}/svc-errors;`)), 'it is shown once')

  const out = await browse(`${prefix}/svc-logout`, cookie)
  assert.deepEqual([out.status, out.location], [302, `${prefix}/svc-login`])
  return [...seen].map((address) => address.slice(prefix.length))
}
