/**
 * One rule of `setup.limit`: identifies the client, takes a token from its bucket, and passes or refuses the request.
 *
 * Every response of the route has `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers): the
 * requests left, and the seconds until the limit is full again. A refusal has `Retry-After` too.
 */
import { createHash } from 'node:crypto'
import { isObject } from '../base/object.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'
import type { OpenLog } from '../base/ports.ts'
import { reasonOf } from '../base/reason.ts'
import { isToken } from '../base/token.ts'
import type { Middleware, Next } from '../chain/compose.ts'
import { settingsTable, type SettingsOf } from '../chain/settings.ts'
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import { isLoopback, networkOf } from '../http/ip-address.ts'
import { isNobody } from '../session/is-auth.ts'
import { Buckets, nextTokenMs, tokensIn, type BucketSize, type BucketStore, type Taken } from './buckets.ts'

/** The options of the group. */
export interface LimitGroupOptions {
  readonly log: OpenLog
  /** Whether an address belongs to a trusted proxy. */
  readonly isTrusted: (address: string) => boolean
  /** The user of a request; a value that names no user counts as signed out. */
  readonly userOf: (ctx: CoreContext) => unknown
  /** Opens the buckets of a rule where processes share them; without it, each process has its own. */
  readonly openBuckets?: ((rule: string, size: BucketSize) => BucketStore) | undefined
}

/** The keys of a rule. */
export const ruleTable = settingsTable({
  by: {
    kind: 'string', default: 'address', check: checkBy,
    meaning: 'Whose requests are counted together: those of one `address` (an IPv6 address counts by its /64), of one '
      + '`user` (`ctx.state.user`, else that of the session, else `sub` of `ctx.state.jwt`, else the address), or with '
      + 'one value of a field, `header:x-client`, which counts only from `server.trusted_proxies` (else the address).',
  },
  count: {
    kind: 'integer', min: 1, max: 1_000_000, default: 60,
    meaning: 'Requests in `per_s` seconds.',
  },
  per_s: {
    kind: 'integer', min: 1, max: 86_400, default: 60,
    meaning: 'Seconds in which `count` requests are allowed.',
  },
  burst: {
    kind: 'integer', min: 0, max: 1_000_000, default: 0,
    meaning: 'Requests that may come at once after a pause; 0: as many as `count`.',
  },
})

/** The settings of a rule. */
export type RuleSettings = SettingsOf<typeof ruleTable>

/** An active rule. */
export interface LimitRule {
  readonly settings: RuleSettings
  readonly run: Middleware
  readonly warnings: () => readonly string[]
}

interface LimitRuleOptions extends LimitGroupOptions {
  /** Called with each refused request. */
  readonly onRefused: () => void
}

/** Longer keys are hashed, since clients choose them. */
const longestKey = 64

const unknownProxy =
  'a limit by address counts all clients behind a proxy as one: requests come from this machine with a forwarding'
  + ' field of a proxy that server.trusted_proxies does not name; add 127.0.0.1 and ::1 there'

/** Makes a rule, with full buckets. */
export function createLimitRule(name: string, settings: RuleSettings, options: LimitRuleOptions): LimitRule {
  const { isTrusted, userOf, openBuckets, onRefused } = options
  const { by, count, per_s: seconds } = settings
  const field = by.startsWith('header:') ? by.slice('header:'.length).toLowerCase() : ''
  const size: BucketSize = { burst: settings.burst || count, intervalMs: (seconds * 1000) / count }
  const log = options.log('server')
  let problem: string | undefined
  let proxyUnknown = false

  const own = new Buckets(size)
  const shared = openBuckets?.(name, size)
  const policy = `"${name}";q=${size.burst};w=${seconds}`

  function take(key: string): MaybePromise<Taken> {
    return shared === undefined ? own.take(key) : takeShared(shared, key)
  }

  async function takeShared(store: BucketStore, key: string): Promise<Taken> {
    try {
      const taken = await store.take(key)
      if (problem !== undefined) log.info(`limit ${name}: all processes are counted together again`)
      problem = undefined
      return taken
    } catch (error) {
      const reason = reasonOf(error)
      if (problem === undefined) log.warn(countsSeparately(name, reason))
      problem = reason
      return own.take(key)
    }
  }

  function keyOfAddress(ctx: CoreContext): string {
    const { ip } = ctx
    if (!proxyUnknown && isForwarded(ctx) && isLoopback(ip) && !isTrusted(peerOf(ctx))) {
      proxyUnknown = true
      log.warn(unknownProxy)
    }
    return networkOf(ip)
  }

  function keyOf(ctx: CoreContext): string {
    if (by === 'user') return keyOfUser(userOf(ctx)) ?? keyOfAddress(ctx)
    const value = field !== '' && isTrusted(peerOf(ctx)) ? ctx.header(field) : undefined
    return value === undefined ? keyOfAddress(ctx) : bounded(`=${value}`) // No address begins with `=`.
  }

  function pass(ctx: CoreContext, next: Next, { isGranted, fullInMs }: Taken): void | Promise<void> {
    const left = isGranted ? tokensIn(size, fullInMs) : 0
    // A route may have several rules.
    ctx.outgoing.addMember('RateLimit-Policy', policy)
    ctx.outgoing.addMember('RateLimit', `"${name}";r=${left};t=${Math.ceil(fullInMs / 1000)}`)
    if (isGranted) return next()
    onRefused()
    const waitS = Math.max(1, Math.ceil(nextTokenMs(size, fullInMs) / 1000))
    throw new HttpError(429, 'too_many_requests', `Too many requests: try again in ${waitS} s`, {
      headers: { 'Retry-After': String(waitS) },
    })
  }

  return {
    settings,
    run: (ctx, next) => {
      const taken = take(keyOf(ctx))
      return taken instanceof Promise ? taken.then((outcome) => pass(ctx, next, outcome)) : pass(ctx, next, taken)
    },
    warnings: () => [
      ...(problem === undefined ? [] : [countsSeparately(name, problem)]),
      ...(proxyUnknown ? [unknownProxy] : []),
    ],
  }
}

function countsSeparately(name: string, reason: string): string {
  return `limit ${name}: each process counts separately until the shared buckets can be reached: ${reason}`
}

function peerOf({ request }: CoreContext): string {
  return request.socket.remoteAddress ?? ''
}

function isForwarded(ctx: CoreContext): boolean {
  return (ctx.header('x-forwarded-for') ?? ctx.header('forwarded')) !== undefined
}

/** The key of a user: its `id` if it has one, else its JSON; undefined if no user is signed in. */
function keyOfUser(user: unknown): string | undefined {
  if (isNobody(user)) return undefined
  const id = isObject(user) ? user['id'] : user
  return bounded(`@${JSON.stringify(id ?? user)}`)
}

function bounded(key: string): string {
  return key.length <= longestKey ? key : createHash('sha256').update(key).digest('base64url')
}

function checkBy(text: string): string | undefined {
  const field = /^header:(.*)$/.exec(text)?.[1]
  if (text === 'address' || text === 'user' || (field !== undefined && isToken(field))) return undefined
  return 'must be "address", "user" or "header:" with the name of a field'
}
