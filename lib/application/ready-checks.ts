/**
 * The readiness checks of an application, `app.ready`. They run when a client asks whether the server is ready, and
 * every few seconds when the metrics are read, all at once. Requests that arrive while they run share the result.
 */
import { endsWithin } from '../base/deadline.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'
import { reasonOf } from '../base/reason.ts'
import { RateLimited } from '../base/rate-limited.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { Registrations, type Scope } from '../modules/registrations.ts'

/** A check that failed, and why. */
export interface FailedCheck {
  readonly name: string
  readonly reason: string
}

/** A check; `pending` is its last call while that has not ended, and when it began. */
interface Check {
  readonly run: () => unknown
  pending: { readonly call: Promise<unknown>; readonly sinceMs: number } | undefined
}

/** The longest time for a check, in milliseconds. */
const timeoutMs = 2000
/** The age of a call, in milliseconds, from which it counts as lost: the check is called again. */
const lostMs = 30_000
/** The age of the results, in milliseconds, from which reading them runs the checks again. */
const freshMs = 4000

/** The checks that an application has registered. */
export class ReadyChecks {
  readonly #checks = new Registrations<Check>('a readiness check')
  readonly #fails: RateLimited
  readonly #passes: RateLimited
  #failed: readonly FailedCheck[] = []
  #running: Promise<readonly FailedCheck[]> | undefined
  #ranAtMs = -Infinity

  /** @param log receives a line when checks begin or cease to fail, or fail for another reason */
  constructor({ warn, info }: Pick<ModuleLogger, 'warn' | 'info'>) {
    this.#fails = new RateLimited(warn, 1000)
    this.#passes = new RateLimited(info, 1000)
  }

  /** Registers a check until its module ends. */
  readonly add = (scope: Scope, name: string, run: () => unknown): void => {
    if (typeof name !== 'string' || !/^[^\p{Cc}]{1,100}$/u.test(name)) {
      throw new TypeError(`Cannot register a readiness check: its name must have 1 to 100 characters: it is ${name}`)
    }
    if (typeof run !== 'function') {
      throw new TypeError(`Cannot register the readiness check "${name}": it is not a function`)
    }
    this.#checks.add(scope, name, { run, pending: undefined })
  }

  /** Runs the checks. Returns, or resolves with, those that fail. */
  run(): MaybePromise<readonly FailedCheck[]> {
    const checks = this.#checks.list()
    if (checks.length === 0) return this.#finish([])
    this.#running ??= Promise.all(checks.map(({ name, item }) => failureOf(name, item))).then((failures) => {
      this.#running = undefined
      return this.#finish(failures.flat())
    })
    return this.#running
  }

  /** Returns the last failures. Runs the checks again if the results are old. */
  failed(): readonly FailedCheck[] {
    if (performance.now() - this.#ranAtMs > freshMs) void this.run()
    return this.#failed
  }

  /** Returns a line for each check that fails. */
  warnings(): string[] {
    return this.failed().map(({ name, reason }) => `not ready: the check ${name} fails: ${reason}`)
  }

  #finish(failed: readonly FailedCheck[]): readonly FailedCheck[] {
    this.#ranAtMs = performance.now()
    const isSame = JSON.stringify(this.#failed) === JSON.stringify(failed)
    this.#failed = failed
    if (isSame) return failed
    if (failed.length === 0) this.#passes.say('all readiness checks pass')
    else this.#fails.say(this.warnings().join('; '))
    return failed
  }
}

async function failureOf(name: string, check: Check): Promise<FailedCheck[]> {
  const failed = (reason: string): FailedCheck[] => [{ name, reason }]
  const { call, sinceMs } = callOf(check)
  try {
    const isInTime = await endsWithin(sinceMs + timeoutMs - performance.now(), call)
    if (!isInTime) return failed(`it took more than ${timeoutMs / 1000} s`)
    return (await call) === false ? failed('it returned false') : []
  } catch (error) {
    return failed(reasonOf(error))
  }
}

/** Calls a check, unless its last call still runs and is not lost. */
function callOf(check: Check): NonNullable<Check['pending']> {
  const now = performance.now()
  if (check.pending !== undefined && now - check.pending.sinceMs <= lostMs) return check.pending
  const call = (async () => check.run())().finally(() => {
    if (check.pending === pending) check.pending = undefined
  })
  const pending = { call, sinceMs: now }
  check.pending = pending
  return pending
}
