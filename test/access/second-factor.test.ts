// The sign-in with a second factor: pages, tickets and codes with a clock that a test sets; then a complete server.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { AdminCredentials } from '../../lib/access/credentials.ts'
import { makeRecoveryCodes } from '../../lib/access/recovery-codes.ts'
import { createSignIn } from '../../lib/access/sign-in.ts'
import { codeOf, makeTotpSecret } from '../../lib/access/totp.ts'
import { usedRecoveryCodes, withUsed, type UsedCodes } from '../../lib/access/used-codes.ts'
import { changeConfig, md5, nowSeconds, password, startPanel, user, type PanelServer } from '../panel/panel-server.ts'
import { request, type Answer } from '../support/request.ts'
import { codeNow, ticketOf } from './second-factor-support.ts'
import { form, leadsTo, makePort, serve } from './support.ts'

const startMs = 1_700_000_010_000 // A step begins here.
const stepMs = 30_000
const { codes: recoveryCodes, hashes } = makeRecoveryCodes()
const secondFactor = { secret: makeTotpSecret(), recoveryCodes: hashes }
const right = { user, password }
const wrongMessage = /Wrong code\. If your app shows it now, check the clocks: the server&#39;s clock says \d\d:\d\d:\d\d UTC\./

/** Serves the sign-in with a clock, and with used codes that every process has at once. */
async function start(t: TestContext, config: Readonly<Record<string, unknown>> = {}) {
  const clock = { ms: startMs }
  let used: UsedCodes = {}
  const held = makePort({ 'server.trusted_proxies': ['127.0.0.1'], ...config }, async (command) => {
    if (command.type !== 'admin.code') throw new Error(`no ${command.type} here`)
    const { code } = command as { code: Parameters<typeof withUsed>[2] }
    const next = withUsed(used, secondFactor.secret, code)
    used = next ?? used
    return { accepted: next !== undefined, left: hashes.length - usedRecoveryCodes(used, secondFactor.secret).length }
  })
  const credentials: AdminCredentials = { user, password: md5(password), secret: 'cookie secret', secondFactor }
  held.credentials = credentials
  const waits: number[] = []
  const wait = (ms: number): Promise<void> => {
    waits.push(ms)
    return Promise.resolve()
  }
  const signIn = createSignIn(held.port, { now: () => clock.ms, wait, changes: (url) => url === '/svc-stop' })
  const url = await serve(t, held, [
    { method: 'GET', url: '/svc-login', action: signIn.loginPage },
    { method: 'POST', url: '/svc-login', action: signIn.login },
    { method: 'GET', url: '/svc-stop', action: () => 'stopped' },
  ])
  const post = (fields: Readonly<Record<string, string>>, from = '192.0.2.1', headers: Record<string, string> = {}) =>
    request(`${url}/svc-login`, form(fields, { 'x-forwarded-for': from, ...headers }))
  /** The code of the present step and of others. */
  const code = (steps = 0): string => codeOf(secondFactor.secret, Math.floor(clock.ms / stepMs) + steps)
  const wrongCode = (): string => ['000000', '000001', '000002', '000003'].find((one) => [-1, 0, 1].every((at) => code(at) !== one)) as string
  const ticket = async (fields: Readonly<Record<string, string>> = {}, from?: string): Promise<string> =>
    ticketOf(await post({ ...right, ...fields }, from))
  return { held, clock, waits, post, code, wrongCode, ticket, credentials }
}

function isSignedIn(answer: Answer, location = '/svc-status'): void {
  leadsTo(answer, location)
  assert.match(answer.headers['set-cookie']?.[0] ?? '', /^svc_admin=/)
}

function isCodePage(answer: Answer, status: number, message: RegExp): void {
  assert.equal(answer.status, status, answer.text)
  assert.match(answer.text, /<input id="code" name="code" inputmode="numeric" autocomplete="one-time-code"[^>]* autofocus>/)
  assert.match(answer.text.match(/role="alert">(.*)<\/p>/)?.[1] ?? '', message)
  assert.equal(answer.headers['set-cookie'], undefined)
  assert.equal(answer.headers['cache-control'], 'no-store')
}

function isFirstPage(answer: Answer, status: number, message: RegExp): void {
  assert.equal(answer.status, status, answer.text)
  assert.match(answer.text, /<input id="password"/)
  assert.match(answer.text.match(/role="alert">(.*)<\/p>/)?.[1] ?? '', message)
  assert.equal(answer.headers['set-cookie'], undefined)
}

describe('the sign-in with a second factor', () => {
  it('asks for the code on a second page, and gives the cookie after it', async (t) => {
    const { post, code, held } = await start(t)
    const second = await post({ ...right, next: '/svc-index' })
    isCodePage(second, 200, /^$/)
    assert.doesNotMatch(second.text, new RegExp(`${password}|${secondFactor.secret}`))
    isSignedIn(await post({ ticket: ticketOf(second), code: code() }), '/svc-index')
    assert.deepEqual(held.lines, [`INFO login by 192.0.2.1: "${user}", code`])
  })

  it('accepts the code with spaces, and with the password in one request', async (t) => {
    const { post, code, clock } = await start(t)
    isSignedIn(await post({ ...right, code: code() }))
    clock.ms += stepMs
    isSignedIn(await post({ ...right, code: code().replace(/^.../, '$& ') }))
  })

  it('does not redirect to what changes something, or to another site', async (t) => {
    const { post, code, ticket, clock } = await start(t)
    for (const next of ['/svc-stop', '//evil.example', 'https://evil.example/']) {
      clock.ms += stepMs
      isSignedIn(await post({ ticket: await ticket({ next }), code: code() }))
    }
  })

  it('does not reveal which of name, password and code was wrong in one request', async (t) => {
    const { post, code, wrongCode, clock } = await start(t)
    const normal = ({ status, headers: { date, ...headers }, text }: Answer): unknown => {
      const nonces = /nonce-[^']+|nonce="[^"]+"/g
      return JSON.stringify([status, headers, text]).replaceAll(/nonce[-=][^'> ]+/g, '').replaceAll(nonces, '')
    }
    const answers = [
      await post({ user, password: 'wrong', code: code() }),
      await post({ user, password: 'wrong', code: wrongCode() }),
      await post({ user, password, code: wrongCode() }),
      await post({ user, password: 'wrong' }),
    ]
    for (const answer of answers) isFirstPage(answer, 401, /^Invalid credentials$/)
    assert.equal(new Set(answers.map(normal)).size, 1)
    isSignedIn(await post({ ...right, code: code() })) // A wrong password has not used the code.
    clock.ms += stepMs
    isFirstPage(await post({ user: 'bob', password, code: code() }), 401, /^Invalid credentials$/)
  })

  it('refuses a code that was used, an older one, and one of a clock that is wrong', async (t) => {
    const { post, code, ticket, clock, held } = await start(t)
    isSignedIn(await post({ ticket: await ticket(), code: code() }))
    for (const at of [0, -1]) {
      isCodePage(await post({ ticket: await ticket(), code: code(at) }), 401, /^This code has been used\. Wait for the next one\.$/)
    }
    for (const at of [4, -4]) isCodePage(await post({ ticket: await ticket(), code: code(at) }), 401, wrongMessage)
    assert.equal(held.lines.filter((line) => /failed login with the right password and a (?:wrong|used) code by/.test(line)).length, 4)
    clock.ms += 2 * stepMs
    isSignedIn(await post({ ticket: await ticket(), code: code(1) }))
    isCodePage(await post({ ticket: await ticket(), code: code() }), 401, /has been used/)
  })

  it('accepts a code of two clients at the same time once', async (t) => {
    const { post, code, ticket } = await start(t)
    const tickets = await Promise.all(Array.from({ length: 8 }, () => ticket()))
    const answers = await Promise.all(tickets.map((each) => post({ ticket: each, code: code() })))
    assert.equal(answers.filter(({ status }) => status === 302).length, 1)
  })

  it('accepts each recovery code once, however it is typed, and says how many are left', async (t) => {
    const { post, ticket, held } = await start(t)
    const [one = '', two = ''] = recoveryCodes
    isSignedIn(await post({ ticket: await ticket(), code: one }))
    isCodePage(await post({ ticket: await ticket(), code: one }), 401, /has been used|Wrong code/)
    isSignedIn(await post({ ...right, code: ` ${two.toUpperCase().replaceAll('-', ' ')} ` }))
    assert.deepEqual(held.lines.filter((line) => line.includes(' login by')), [
      `INFO login by 192.0.2.1: "${user}", recovery code, 9 left`,
      `INFO login by 192.0.2.1: "${user}", recovery code, 8 left`,
    ])
  })
})

describe('a ticket', () => {
  const again = /^The page for the code has expired\. Log in again\.$/

  it('ends after five minutes, also over wrong codes', async (t) => {
    const { post, code, wrongCode, ticket, clock } = await start(t)
    const first = await ticket()
    clock.ms += 200_000
    const second = ticketOf(await post({ ticket: first, code: wrongCode() }))
    clock.ms += 99_000
    const third = ticketOf(await post({ ticket: second, code: wrongCode() }))
    clock.ms += 1000
    isFirstPage(await post({ ticket: third, code: code() }), 401, again)
    isSignedIn(await post({ ticket: await ticket(), code: code() }))
  })

  it('is good for one attempt', async (t) => {
    const { post, code, wrongCode, ticket, clock } = await start(t)
    const first = await ticket()
    const second = ticketOf(await post({ ticket: first, code: wrongCode() }))
    isFirstPage(await post({ ticket: first, code: code() }), 401, again)
    isSignedIn(await post({ ticket: second, code: code() }))
    clock.ms += stepMs
    isFirstPage(await post({ ticket: second, code: code() }), 401, again)
  })

  it('is not good when altered, or of other credentials', async (t) => {
    const { post, code, ticket, held, credentials } = await start(t)
    const good = await ticket()
    for (const bad of ['', good.slice(1), `${good.slice(0, -1)}g`, good.replace(/^\d/, '9')]) {
      isFirstPage(await post({ ticket: bad, code: code() }), 401, again)
    }
    for (const others of [
      { ...credentials, password: md5('a new password') },
      { ...credentials, user: 'bob' },
      { ...credentials, secret: 'another' },
      { ...credentials, secondFactor: { ...secondFactor, secret: makeTotpSecret() } },
    ]) {
      held.credentials = others
      isFirstPage(await post({ ticket: good, code: code() }), 401, again)
    }
    const { secondFactor: _, ...without } = credentials
    held.credentials = without
    isFirstPage(await post({ ticket: good, code: code() }), 401, again)
    held.credentials = credentials
    isSignedIn(await post({ ticket: good, code: code() }))
  })

  it('is not an admin cookie', async (t) => {
    const { post, ticket } = await start(t)
    assert.equal((await post({ ticket: await ticket(), code: '' })).headers['set-cookie'], undefined)
  })
})

describe('wrong codes', () => {
  it('end the attempts of the account, from however many addresses, but not those of who is signed in', async (t) => {
    const { post, code, wrongCode, ticket, clock, waits } = await start(t)
    const signedIn = await post({ ...right, code: code() })
    const cookie = signedIn.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    clock.ms += stepMs
    const statuses: number[] = []
    for (let at = 1; at <= 100; at += 1) {
      const from = `198.51.100.${at}`
      const answer = await post({ ticket: await ticket({}, from), code: wrongCode() }, from)
      statuses.push(answer.status)
      if (answer.status === 429) isCodePage(answer, 429, /^Too many wrong codes\. Try again in 600 seconds\.$/)
    }
    assert.deepEqual(statuses, [...Array<number>(10).fill(401), ...Array<number>(90).fill(429)])
    assert.equal(waits.length, 7)
    const refused = await post({ ticket: await ticket(), code: code() })
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '600'])
    assert.equal((await post({ ...right, code: code() })).status, 429)
    isSignedIn(await post({ ticket: await ticket(), code: code() }, '192.0.2.1', { cookie }))
  })

  it('count for the address too, and a right password does not set the count back', async (t) => {
    const { post, ticket, held } = await start(t)
    for (let at = 0; at < 100; at += 1) await ticket({}, '203.0.113.9')
    const refused = await post(right, '203.0.113.9')
    assert.equal(refused.status, 429)
    isFirstPage(refused, 429, /^Too many failed logins/)
    assert.equal((await post(right, '203.0.113.10')).status, 200)
    assert.deepEqual(held.lines, [])
  })

  it('are forgotten after a right code', async (t) => {
    const { post, code, wrongCode, ticket } = await start(t)
    for (let at = 0; at < 9; at += 1) await post({ ticket: await ticket(), code: wrongCode() })
    isSignedIn(await post({ ticket: await ticket(), code: code() }))
    for (let at = 0; at < 9; at += 1) {
      isCodePage(await post({ ticket: await ticket(), code: wrongCode() }), 401, wrongMessage)
    }
  })

  it('cannot be sent for the account by who does not know the password', async (t) => {
    const { post, code, wrongCode, ticket } = await start(t)
    for (let at = 0; at < 50; at += 1) {
      const ticketOfOthers = `${Math.floor(startMs / 1000) + 100}_${'a'.repeat(16)}_.${'0'.repeat(64)}`
      await post({ ticket: ticketOfOthers, code: wrongCode() }, `198.51.100.${at}`)
      await post({ user, password: 'wrong', code: wrongCode() }, `198.51.100.${at}`)
    }
    isSignedIn(await post({ ticket: await ticket(), code: code() }))
  })
})

describe('a server with a second factor', () => {
  const factor = { 'admin.totp': secondFactor.secret, 'admin.recovery_codes': hashes, 'admin.secret': 'random secret' }
  const signIn = (server: PanelServer, code: string): Promise<Answer> => server.ask('/svc-login', form({ ...right, code }))

  it('accepts a code once, a restart included, and keeps only the step of it', async (t) => {
    const server = await startPanel(t, factor)
    const code = codeNow(secondFactor.secret)
    isSignedIn(await signIn(server, code))
    assert.equal((await signIn(server, code)).status, 401)
    const file = join(server.folder, '.cached', 'totp-used')
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.doesNotMatch(readFileSync(file, 'utf8'), new RegExp(`${code}|${secondFactor.secret}`))
    await server.restart()
    assert.equal((await signIn(server, code)).status, 401)
  })

  it('removes a used recovery code from svc.json, and accepts it no more after a restart', async (t) => {
    const server = await startPanel(t, factor)
    const [one = '', two = ''] = recoveryCodes
    isSignedIn(await signIn(server, one))
    assert.deepEqual(server.saved()['admin.recovery_codes'], hashes.slice(1))
    const changes = (await server.askSignedIn('/svc-changes?format=json', { headers: await cookieFor(server, two) })).json()
    const logins = (changes as { what: string; user: string; to: string }[]).filter(({ what }) => what === 'login')
    assert.deepEqual(logins.map(({ user: by, to }) => [by, to]), [[user, 'recovery code, 8 left'], [user, 'recovery code, 9 left']])
    await server.restart()
    for (const code of [one, two]) assert.equal((await signIn(server, code)).status, 401)
    rmSync(join(server.folder, '.cached'), { recursive: true })
    await server.restart()
    for (const code of [one, two]) assert.equal((await signIn(server, code)).status, 401)
  })

  it('accepts no used recovery code after a restart when svc.json could not be saved, with a warning', async (t) => {
    const server = await startPanel(t, factor)
    const [one = ''] = recoveryCodes
    const saved = JSON.stringify(server.saved())
    const path = join(server.folder, 'svc.json')
    rmSync(path)
    mkdirSync(path)
    isSignedIn(await signIn(server, one))
    const warning = /^WARN config a used recovery code stays in admin\.recovery_codes: /
    assert.ok(server.lines().some((line) => warning.test(line)), server.lines().join('\n'))
    rmSync(path, { recursive: true })
    writeFileSync(path, saved)
    await server.restart()
    assert.equal((await signIn(server, one)).status, 401)
  })

  it('signs in when the used code cannot be saved, with a warning', async (t) => {
    const server = await startPanel(t, { ...factor, 'paths.cache': 'cache', cache_disk: false })
    rmSync(join(server.folder, 'cache'), { recursive: true, force: true })
    writeFileSync(join(server.folder, 'cache'), '')
    isSignedIn(await signIn(server, codeNow(secondFactor.secret)))
    const warning = /^cannot save .*totp-used .*: a used code of the second factor is good again/
    assert.ok(server.app.warnings().some((line) => warning.test(line)), server.app.warnings().join('\n'))
    assert.ok(server.lines().some((line) => /^WARN server cannot save .*totp-used/.test(line)))
    assert.equal((await signIn(server, codeNow(secondFactor.secret))).status, 401)
  })

  it('begins anew with a new secret, and asks for no code once admin.totp is empty', async (t) => {
    const server = await startPanel(t, factor)
    isSignedIn(await signIn(server, codeNow(secondFactor.secret)))
    const another = makeTotpSecret()
    changeConfig(server, { 'admin.totp': another })
    await server.restart()
    isSignedIn(await signIn(server, codeNow(another)))
    changeConfig(server, { 'admin.totp': '', 'admin.recovery_codes': [] })
    await server.restart()
    isSignedIn(await server.ask('/svc-login', form(right)))
  })

  it('makes a random secret for the cookie, which the password does not reveal, and warns of another', async (t) => {
    const derived = md5(`${nowSeconds()}${user}${password}`)
    const server = await startPanel(t, { ...factor, 'admin.secret': derived })
    const warning = /^admin\.totp is set, but admin\.secret looks like an MD5 made from the password/
    assert.ok(server.app.warnings().some((line) => warning.test(line)))
    changeConfig(server, { 'admin.secret': '' })
    await server.restart()
    assert.ok(!server.app.warnings().some((line) => warning.test(line)))
    isSignedIn(await signIn(server, codeNow(secondFactor.secret)))
    assert.match(String(server.saved()['admin.secret']), /^[\w-]{43}$/)
  })

  it('shows neither secret nor hashes', async (t) => {
    const server = await startPanel(t, factor)
    const headers = await cookieFor(server, recoveryCodes[0] ?? '')
    const { text } = await server.ask('/svc-config?format=json', { headers })
    const { keys } = JSON.parse(text) as { keys: { key: string; value: unknown; source: string }[] }
    const rows = keys.filter(({ key }) => key === 'admin.totp' || key === 'admin.recovery_codes')
    assert.deepEqual(rows.map(({ key, value }) => [key, value]), [['admin.totp', 'set'], ['admin.recovery_codes', 'set']])
    const logs = server.lines().join('\n')
    for (const secret of [secondFactor.secret, ...hashes]) assert.ok(!`${text}${logs}`.includes(secret))
  })

  it('keeps the second factor over a setup', async (t) => {
    const server = await startPanel(t, { ...factor, 'admin.user': '', 'admin.password': '', 'admin.secret': '' })
    leadsTo(await server.ask('/svc-setup', form({ ...right, password2: password })), '/svc-login')
    assert.equal(server.saved()['admin.totp'], secondFactor.secret)
    isCodePage(await server.ask('/svc-login', form(right)), 200, /^$/)
    isSignedIn(await signIn(server, codeNow(secondFactor.secret)))
  })
})

/** The Cookie field of a new sign-in. */
async function cookieFor(server: PanelServer, code: string): Promise<Record<string, string>> {
  const answer = await server.ask('/svc-login', form({ ...right, code }))
  isSignedIn(answer)
  return { cookie: answer.headers['set-cookie']?.[0]?.split(';')[0] ?? '' }
}
