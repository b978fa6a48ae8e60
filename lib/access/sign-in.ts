/**
 * The actions for sign-in, sign-out and the first setup.
 *
 * With a second factor, a right password only leads to a second page, which asks for the code; the cookie comes after
 * the code. A program may send the code together with the password.
 *
 * The pages do not reveal whether the name or the password was wrong, and both are always compared. The name of a
 * failed login is not logged: it may be a password typed into the wrong field.
 */
import { reasonOf } from '../base/reason.ts'
import type { CoreContext } from '../http/context.ts'
import { isHttpError } from '../http/errors.ts'
import type { Reply } from '../http/reply.ts'
import { createCodeThrottle, type CodeThrottle } from './code-throttle.ts'
import { cookieRulesOf, dropAdminCookie, hasAdminCookie, setAdminCookie } from './cookie.ts'
import { checkSetup, setupRequired } from './credentials.ts'
import { safeNext, type Changes } from './next-path.ts'
import { page, redirectTo } from './isolated-page.ts'
import { createPasswordCheck, equalTexts, type PasswordCheck } from './password.ts'
import type { AccessPort } from './access-port.ts'
import { messageOf, tryCode } from './second-factor.ts'
import { createSetupToken } from './setup-token.ts'
import { createLoginThrottle, type LoginThrottle, type ThrottleOptions } from './throttle.ts'
import { makeTicket, readTicket, ticketMs } from './ticket.ts'

/** The options; tests set `now` and `wait`. */
export interface SignInOptions extends ThrottleOptions {
  /** Whether a GET on a system route's URL changes something; a login never redirects there. */
  readonly changes: Changes
  /** Counts failed logins; default: a separate throttle. */
  readonly throttle?: LoginThrottle
  /** Counts wrong codes; default: a separate throttle. */
  readonly codeThrottle?: CodeThrottle
  /** Checks passwords; default: a separate check. */
  readonly passwords?: PasswordCheck | undefined
}

/** The actions, and a function that the start calls. */
export type SignIn = ReturnType<typeof createSignIn>

/** The input that a form redisplays. */
interface Typed {
  readonly user: string
  readonly next?: string | undefined
  readonly token?: string
}

/** Where a login without `next` redirects to, and the default `next` of the form: a page for people. */
const afterLogin = '/svc-status'
const monitorPage = '/svc-monitor'
/** The maximum length of a name in the logs. */
const maxNameLength = 100
const setupFields = ['user', 'password', 'password2', 'setup_token'] as const

/** Makes the actions of one server. */
export function createSignIn(port: AccessPort, options: SignInOptions) {
  const now = options.now ?? Date.now
  const throttle = options.throttle ?? createLoginThrottle(options)
  const codes = options.codeThrottle ?? createCodeThrottle(options)
  const passwords = options.passwords ?? createPasswordCheck()
  const setupToken = createSetupToken(port)

  function loginForm(ctx: CoreContext, typed: Typed, message: string, status?: number): Reply {
    const next = safeNext(typed.next, ctx, port, options.changes) ?? monitorPage
    const data = { title: 'Log in', signedIn: false, setupRequired: setupRequired(port.credentials()) }
    return page(ctx, port, 'login.html', { ...data, user: typed.user, next, message }, status)
  }

  function setupForm(ctx: CoreContext, typed: Typed, message: string, status?: number): Reply {
    const tokenRequired = setupToken.requiredFor(ctx)
    const data = { title: 'Set up the admin panel', signedIn: false, tokenRequired }
    return page(ctx, port, 'setup.html', { ...data, user: typed.user, token: typed.token ?? '', message }, status)
  }

  function tooMany(ctx: CoreContext, typed: Typed, seconds: number): Reply {
    ctx.setHeader('Retry-After', seconds)
    return loginForm(ctx, typed, `Too many failed logins. ${againIn(seconds)}`, 429)
  }

  function tooManyCodes(ctx: CoreContext, ticket: string, seconds: number): Reply {
    ctx.setHeader('Retry-After', seconds)
    return codeForm(ctx, ticket, `Too many wrong codes. ${againIn(seconds)}`, 429)
  }

  async function areValid(user: string, password: string): Promise<boolean> {
    const credentials = port.credentials()
    const isUser = equalTexts(user.normalize('NFC'), credentials.user.normalize('NFC'))
    const isPassword = await passwords.matches(password, credentials.password)
    return isUser && isPassword
  }

  /** Returns the secret; makes and saves it if there is none. */
  async function currentSecret(ctx: CoreContext): Promise<string> {
    const { secret } = port.credentials()
    if (secret !== '') return secret
    const answer = await port.ensureSecret()
    if (answer.made) port.audit(ctx, 'admin.secret made', { detail: 'it was empty' })
    return answer.secret
  }

  /** Replies with the form and the reason why the credentials could not be saved. */
  function unsaved(ctx: CoreContext, error: unknown, form: (message: string) => Reply): Reply {
    if (isHttpError(error)) throw error // The shared engine cannot be reached: send the usual response.
    port.log.error('the admin credentials could not be saved', { thrown: error, request: ctx })
    return form(`${reasonOf(error)} (request ${ctx.id})`)
  }

  function codeForm(ctx: CoreContext, ticket: string, message: string, status?: number): Reply {
    return page(ctx, port, 'code.html', { title: 'Enter the code', signedIn: false, ticket, message }, status)
  }

  async function login(ctx: CoreContext): Promise<Reply> {
    if (setupRequired(port.credentials())) return redirectTo(ctx, '/svc-setup')
    const form = await ctx.readForm()
    const isKnown = hasAdminCookie(ctx, port, now())
    const ticket = form.get('ticket')
    const code = form.get('code') ?? ''
    const typed = { user: form.get('user') ?? '', next: form.get('next') }
    const refusedFor = await throttle.begin(ctx.ip, isKnown)
    if (refusedFor > 0) {
      return ticket === undefined ? tooMany(ctx, typed, refusedFor) : tooManyCodes(ctx, ticket, refusedFor)
    }
    if (ticket !== undefined) return checkCode(ctx, ticket, code, isKnown)
    if (!(await areValid(typed.user, form.get('password') ?? ''))) return refuse(ctx, typed)
    let secret: string
    try {
      secret = await currentSecret(ctx)
    } catch (error) {
      return unsaved(ctx, error, (message) => loginForm(ctx, typed, message, 500))
    }
    const { secondFactor } = port.credentials()
    if (secondFactor === undefined) return admit(ctx, secret, typed.next)
    if (code === '') {
      const next = safeNext(typed.next, ctx, port, options.changes) ?? ''
      return codeForm(ctx, newTicket({ next, expiresAtMs: now() + ticketMs }), '')
    }
    const codesRefusedFor = await codes.begin(isKnown)
    if (codesRefusedFor > 0) return tooMany(ctx, typed, codesRefusedFor)
    const result = await tryCode(secondFactor, port, code, now())
    return typeof result === 'string' ? refuse(ctx, typed, result) : admit(ctx, secret, typed.next, result.by)
  }

  /** The second page. A wrong code leads to it again, with a ticket that ends at the same time. */
  async function checkCode(ctx: CoreContext, sent: string, code: string, isKnown: boolean): Promise<Reply> {
    const again = (): Reply => loginForm(ctx, { user: '' }, 'The page for the code has expired. Log in again.', 401)
    const credentials = port.credentials()
    const { secondFactor, secret } = credentials
    const ticket = readTicket(sent, credentials, now())
    if (ticket === undefined || secondFactor === undefined) return again()
    const refusedFor = await codes.begin(isKnown)
    if (refusedFor > 0) return tooManyCodes(ctx, sent, refusedFor)
    if (!(await codes.useTicket(ticket.id))) return again()
    const result = await tryCode(secondFactor, port, code, now())
    if (typeof result !== 'string') return admit(ctx, secret, ticket.next, result.by)
    const retryAfter = await failed(ctx, result)
    const another = newTicket(ticket)
    return retryAfter > 0
      ? tooManyCodes(ctx, another, retryAfter)
      : codeForm(ctx, another, messageOf(result, now()), 401)
  }

  /** Answers a wrong name, password or code, without revealing which. */
  async function refuse(ctx: CoreContext, typed: Typed, result?: 'wrong' | 'used'): Promise<Reply> {
    const retryAfter = await failed(ctx, result)
    return retryAfter > 0 ? tooMany(ctx, typed, retryAfter) : loginForm(ctx, typed, 'Invalid credentials', 401)
  }

  /**
   * Records a failed login. Resolves when to answer, with 0 or the seconds after which to retry.
   * @param result of the code, if the password was right
   */
  async function failed(ctx: CoreContext, result?: 'wrong' | 'used'): Promise<number> {
    const what = result === undefined ? 'failed login' : `failed login with the right password and a ${result} code`
    // The name is not logged: it may be the password in the wrong field.
    port.audit(ctx, what, { failed: true })
    const [seconds] = await Promise.all([throttle.failed(ctx.ip), result && codes.failed()])
    return seconds
  }

  function newTicket(content: Parameters<typeof makeTicket>[0]): string {
    return makeTicket(content, port.credentials())
  }

  /** @param by the second factor, if there is one */
  function admit(ctx: CoreContext, secret: string, next: string | undefined, by?: string): Reply {
    const { user } = port.credentials()
    throttle.succeeded(ctx.ip)
    if (by !== undefined) codes.succeeded()
    setAdminCookie(ctx, cookieRulesOf(port.config, secret, now()))
    const detail = by === undefined ? shown(user) : `${shown(user)}, ${by}`
    port.audit(ctx, 'login', { detail, user, ...(by !== undefined && { to: by }) })
    return redirectTo(ctx, safeNext(next, ctx, port, options.changes) ?? afterLogin)
  }

  function logout(ctx: CoreContext): Reply {
    const { user } = port.credentials()
    if (hasAdminCookie(ctx, port, now())) port.audit(ctx, 'logout', { detail: shown(user), user })
    dropAdminCookie(ctx)
    return redirectTo(ctx, '/svc-login')
  }

  async function setup(ctx: CoreContext): Promise<Reply> {
    if (!setupRequired(port.credentials())) return redirectTo(ctx, '/svc-login')
    const form = await ctx.readForm()
    const [user = '', password = '', password2 = '', token = ''] = setupFields.map((name) => form.get(name))
    const again = (message: string, status: number): Reply => setupForm(ctx, { user, token }, message, status)
    const problem = checkSetup({ user, password, password2 })
    if (problem !== undefined) return again(problem, 422)
    const tokenIsRight = !setupToken.requiredFor(ctx) || setupToken.matches(token.trim())
    if (!tokenIsRight) return again('Setup token is missing or wrong', 422)
    const before = port.credentials().user
    try {
      const done = await port.setUp(user, password)
      const detail = `from ${shown(before)} to ${shown(user)}`
      if (done) port.audit(ctx, 'admin.user and admin.password set up', { detail, user, from: before, to: user })
    } catch (error) {
      return unsaved(ctx, error, (message) => again(message, 500))
    }
    return redirectTo(ctx, '/svc-login')
  }

  return {
    loginPage: (ctx: CoreContext): Reply => loginForm(ctx, { user: '', next: ctx.query.get('next') ?? undefined }, ''),
    login,
    logout,
    setupPage: (ctx: CoreContext): Reply =>
      setupRequired(port.credentials()) ? setupForm(ctx, { user: '' }, '') : redirectTo(ctx, '/svc-login'),
    setup,
    /** Logs the setup token if a setup is required. */
    announceSetup: setupToken.announce,
  }
}

function againIn(seconds: number): string {
  return `Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`
}

/** Formats a name for a log line, shortened. */
function shown(user: string): string {
  return JSON.stringify(user.length > maxNameLength ? `${user.slice(0, maxNameLength)}...` : user)
}
