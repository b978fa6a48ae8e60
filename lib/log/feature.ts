/**
 * The logs as applications use them: in the context `log` (module `app`), `logger(module)` and the short names of the
 * specification; outside of requests, the same functions without a request.
 */
import type { Logger as AuthorLogger, LogFields } from 'svc'
import type { LogDetails, LoggedRequest } from '../base/ports.ts'
import { isObject } from '../base/object.ts'
import { isError, textOf } from '../base/reason.ts'
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import type { Logger, ModuleLogger } from './logger.ts'

type Context = CoreContext & { readonly log: AuthorLogger }

/** Makes the feature for a server's general log. */
export function logFeature(logger: Logger): Feature {
  const log = logger.module('app')
  const members: Readonly<Record<string, (ctx: Context) => unknown>> = {
    log: (ctx) => authorLogger(log, ctx),
    logger: (ctx) => (module: string) => authorLogger(logger.module(module), ctx),
    ld: ({ log: { debug } }) => debug,
    l: ({ log: { info } }) => info,
    lw: ({ log: { warn } }) => warn,
    le: ({ log: { error } }) => error,
    lf: ({ log: { fatal } }) => fatal,
  }
  return { name: 'log', members: Object.entries(members).map(([name, make]) => ({ name, make })) }
}

/**
 * The log of a module as applications call it: a message, then the thrown value, then fields; both are optional.
 * @param request the request that the lines are about, if any
 */
export function authorLogger(log: ModuleLogger, request?: LoggedRequest): AuthorLogger {
  type Write = (message: unknown, thrownOrFields?: unknown, fields?: unknown) => void
  const forAuthors = (write: ModuleLogger['info']): Write => {
    return (message, second, third) => write(titleOf(message), detailsOf(message, second, third, request))
  }
  const info = forAuthors(log.info)
  const made = Object.assign((message: string, fields?: LogFields) => info(message, fields), {
    debug: forAuthors(log.debug),
    info,
    warn: forAuthors(log.warn),
    error: forAuthors(log.error),
    fatal: forAuthors(log.fatal),
  })
  const debugEnabled = { get: () => log.debugEnabled, enumerable: true }
  return Object.defineProperty(made, 'debugEnabled', debugEnabled) as AuthorLogger // It has every member now.
}

/** Distinguishes fields, which are a plain object, from a thrown value, which may be anything. */
function detailsOf(message: unknown, second: unknown, third: unknown, request: LoggedRequest | undefined): LogDetails {
  const thrown = isFields(second) ? undefined : second
  return {
    ...(request !== undefined && { request }),
    thrown: thrown ?? (isError(message) ? message : undefined),
    fields: [second, third].find(isFields),
  }
}

function isFields(value: unknown): value is LogFields {
  try {
    if (!isObject(value)) return false
    const prototype: unknown = Object.getPrototypeOf(value)
    return prototype === Object.prototype || prototype === null
  } catch {
    return false // A revoked proxy.
  }
}

/** A message as text; JavaScript callers may pass a non-string. The stack of an error follows its line. */
function titleOf(message: unknown): string {
  return typeof message === 'string' ? message : textOf(message).split('\n', 1).join()
}
