/**
 * The counters and gauges of an application, `app.metrics`. A module registers them while it is set up, and its
 * successor after a reload registers them anew: a counter then continues, and a gauge gets its new function.
 */
import type { AppMetrics as AuthorMetrics, Counter } from 'svc'
import { RateLimited } from '../base/rate-limited.ts'
import { reasonOf } from '../base/reason.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { labelOf, maxRows, overflowOf, type AppMetricReading } from '../metrics/app-readings.ts'
import type { Labelled } from '../metrics/values.ts'
import { Registrations, type Scope } from '../modules/registrations.ts'

type Registered = Omit<AppMetricReading, 'name' | 'value'> & {
  /** The value of a counter. */
  readonly counts: Map<string, number>
  /** Reads a gauge. */
  readonly read?: (() => unknown) | undefined
}

const maxMetrics = 1000
const maxLabelLength = 200
const warnEveryMs = 60_000
const validName = /^[a-zA-Z_][a-zA-Z0-9_]{0,99}$/

/** The metrics that an application has registered. */
export class AppMetrics {
  readonly #registered = new Registrations<Registered>('a metric')
  readonly #log: Pick<ModuleLogger, 'warn'>
  readonly #unread: RateLimited

  /** @param log that of the module `metrics` */
  constructor(log: Pick<ModuleLogger, 'warn'>) {
    this.#log = log
    this.#unread = new RateLimited(log.warn, warnEveryMs)
  }

  /** Returns `app.metrics` of one module. */
  of(scope: Scope): AuthorMetrics {
    return {
      counter: (name, help, labels = []) => this.#counter(scope, name, help, labels),
      gauge: (name, help, read) => {
        if (typeof read !== 'function') throw new TypeError(`Cannot create gauge ${name}: read is not a function`)
        this.#add(scope, name, { kind: 'gauge', help, labels: [], counts: new Map(), read })
      },
    }
  }

  /** Reads all. A gauge that cannot be read is left out. */
  read(): AppMetricReading[] {
    return this.#registered.list().flatMap(({ name, item: { kind, help, labels, counts, read } }) => {
      const value = read === undefined ? Object.fromEntries(counts) : this.#readGauge(name, read)
      return value === undefined ? [] : { name: `app_${name}`, kind, help, labels, value }
    })
  }

  #counter(scope: Scope, name: string, help: string, labels: readonly string[]): Counter {
    const isValid = (label: string, at: number): boolean =>
      validName.test(label) && !label.startsWith('__') && labels.indexOf(label) === at
    if (!Array.isArray(labels) || !labels.every(isValid)) {
      const rule = 'must be a list of different names of letters, digits and _ that do not begin with a digit or __'
      throw new TypeError(`Cannot create counter ${name}: its labels ${rule}: they are ${JSON.stringify(labels)}`)
    }
    const before = this.#registered.get(name)
    const continues = before?.kind === 'counter' && before.labels.join() === labels.join()
    const counts = continues ? before.counts : new Map<string, number>(labels.length === 0 ? [['', 0]] : [])
    this.#add(scope, name, { kind: 'counter', help, labels, counts })
    let isFull = false
    return {
      add: (by = 1, values = {}) => {
        if (typeof by !== 'number' || !(by >= 0 && by < Infinity)) {
          throw new RangeError(`Cannot add to app_${name}: the number must be 0 or more: it is ${String(by)}`)
        }
        let row = rowOf(name, labels, values)
        if (!counts.has(row) && counts.size >= maxRows) {
          if (!isFull) {
            const most = `app_${name} has ${maxRows} combinations of label values: further ones count as "other"`
            this.#log.warn(`${most}; use labels with few values`)
          }
          isFull = true
          row = overflowOf(labels)
        }
        counts.set(row, (counts.get(row) ?? 0) + by)
      },
    }
  }

  #add(scope: Scope, name: string, metric: Registered): void {
    const problem = !validName.test(name)
      ? 'its name must have letters, digits and _, at most 100, and not begin with a digit'
      : typeof metric.help !== 'string' || metric.help === ''
        ? 'it needs a help text'
        : this.#registered.list().length >= maxMetrics && `there are ${maxMetrics} metrics`
    if (problem) throw new TypeError(`Cannot create ${metric.kind} ${JSON.stringify(name)}: ${problem}`)
    this.#registered.add(scope, name, metric)
  }

  #readGauge(name: string, read: () => unknown): Labelled | undefined {
    try {
      const value = read()
      if (typeof value === 'number' && Number.isFinite(value)) return { '': value }
      if (value instanceof Promise) value.catch(() => {})
      throw new TypeError(`it returned ${typeof value === 'number' ? value : typeof value}, not a finite number`)
    } catch (error) {
      this.#unread.say(`the gauge app_${name} is left out: ${reasonOf(error)}`, name)
    }
  }
}

/** @throws TypeError when the labels are not those that the counter was created with */
function rowOf(name: string, labels: readonly string[], values: Readonly<Record<string, unknown>>): string {
  const given = Object.keys(values)
  if (given.length !== labels.length || !labels.every((label) => Object.hasOwn(values, label))) {
    const what = `its labels are ${labels.join(', ') || 'none'}: given are ${given.join(', ') || 'none'}`
    throw new TypeError(`Cannot add to app_${name}: ${what}`)
  }
  return labels.map((label) => labelOf(label, String(values[label]).slice(0, maxLabelLength).toWellFormed())).join()
}
