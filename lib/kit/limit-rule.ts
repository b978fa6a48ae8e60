/**
 * One rule of `setup.limit`: finds whose request it is, takes a token of that bucket, and passes or refuses.
 *
 * Every answer of the route has `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers): how many
 * requests are left, and in how many seconds the limit is full again. A refused one has `Retry-After` too.
 */
import { createHash } from 'node:crypto'
import type { Middleware, Next } from '../chain/compose.ts'
import { isObject } from '../base/object.ts'
import { reasonOf } from '../base/reason.ts'
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import { isLoopback, networkOf } from '../http/ip-address.ts'
import { isNobody } from '../session/is-auth.ts'
import { Buckets, nextTokenMs, tokensIn, type BucketSize, type Taken } from './buckets.ts'
import { Leases } from './leases.ts'
import type { LimitGroupOptions, RuleSettings } from './limit.ts'

/** A rule in use. */
export interface LimitRule {
  readonly settings: RuleSettings
  readonly run: Middleware
  readonly warnings: () => readonly string[]
}

interface LimitRuleOptions extends LimitGroupOptions {
  /** Called with each refused request. */
  readonly onRefused: () => void
}

/** Longer keys are hashed: clients choose them. */
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

  function reached(error: unknown): void {
    const now = error === undefined ? undefined : reasonOf(error)
    if ((now === undefined) !== (problem === undefined)) {
      if (now === undefined) log.info(`limit ${name}: requests of all processes are counted together again`)
      else log.warn(countsAlone(name, now))
    }
    problem = now
  }

  const buckets =
    openBuckets === undefined ? new Buckets(size) : new Leases(size, openBuckets(name, size), reached)
  const policy = `"${name}";q=${size.burst};w=${seconds}`

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

  function pass(ctx: CoreContext, next: Next, { granted, fullInMs }: Taken): void | Promise<void> {
    const left = granted === 0 ? 0 : tokensIn(size, fullInMs)
    // A route may have several rules.
    ctx.outgoing.addMember('RateLimit-Policy', policy)
    ctx.outgoing.addMember('RateLimit', `"${name}";r=${left};t=${Math.ceil(fullInMs / 1000)}`)
    if (granted > 0) return next()
    onRefused()
    const waitS = Math.max(1, Math.ceil(nextTokenMs(size, fullInMs) / 1000))
    throw new HttpError(429, 'too_many_requests', `Too many requests: try again in ${waitS} s`, {
      headers: { 'Retry-After': String(waitS) },
    })
  }

  return {
    settings,
    run: (ctx, next) => {
      const taken = buckets.take(keyOf(ctx), 1)
      return taken instanceof Promise ? taken.then((outcome) => pass(ctx, next, outcome)) : pass(ctx, next, taken)
    },
    warnings: () => [
      ...(problem === undefined ? [] : [countsAlone(name, problem)]),
      ...(proxyUnknown ? [unknownProxy] : []),
    ],
  }
}

function countsAlone(name: string, reason: string): string {
  return `limit ${name}: each process counts for itself until its buckets can be reached: ${reason}`
}

function peerOf({ request }: CoreContext): string {
  return request.socket.remoteAddress ?? ''
}

function isForwarded(ctx: CoreContext): boolean {
  return (ctx.header('x-forwarded-for') ?? ctx.header('forwarded')) !== undefined
}

/** The key of a user: its `id` if it has one, else its JSON. Undefined: nobody is signed in. */
function keyOfUser(user: unknown): string | undefined {
  if (isNobody(user)) return undefined
  const id = isObject(user) ? user['id'] : user
  return bounded(`@${JSON.stringify(id ?? user)}`)
}

function bounded(key: string): string {
  return key.length <= longestKey ? key : createHash('sha256').update(key).digest('base64url')
}
