/**
 * The trace switches: one per module of the server. They hold back DEBUG and INFO lines; WARN and above always pass.
 *
 * Surprise: a module that is not in the list (an application's own) cannot be switched and always passes.
 */

/** The modules that have a switch, in the order in which they are shown. */
export const traceModules = [
  'app',
  'server',
  'worker_http',
  'worker_ws',
  'worker_otros',
  'pool',
  'pool_detector',
  'metrics',
  'config',
  'socket',
  'monitor',
  'response',
  'logger',
  'error',
] as const

/** One switch, as a logger holds it: `on` is always the present state. */
interface TraceSwitch {
  readonly on: boolean
}

const alwaysOn: TraceSwitch = Object.freeze({ on: true })

/** The state of all switches. */
export class Trace {
  readonly #switches = new Map<string, { on: boolean }>()

  /**
   * @param initial the switches that do not start on, by name; `all` is all of them, a name behind it an exception
   * @throws RangeError when a name is unknown
   */
  constructor(initial: Readonly<Record<string, boolean>> = {}) {
    for (const module of traceModules) this.#switches.set(module, { on: true })
    for (const [module, enabled] of Object.entries(initial)) this.set(module, enabled)
  }

  /** A new object: every module's name and whether its switch is on. */
  state(): Record<string, boolean> {
    return Object.fromEntries([...this.#switches].map(([module, { on }]) => [module, on]))
  }

  /**
   * Turns one switch, or with `all` every one.
   * @throws RangeError that names the known modules when the name is none of them
   */
  set(module: string, enabled: boolean): void {
    this.check(module)
    for (const [name, each] of this.#switches) if (module === 'all' || module === name) each.on = enabled
  }

  /**
   * Checks a name.
   * @throws RangeError that names the known modules when the name is none of them, nor `all`
   */
  check(module: string): void {
    if (module !== 'all' && !this.#switches.has(module)) throw new RangeError(unknownModule(module))
  }

  /** The switch of a module: whether its DEBUG and INFO lines pass, now and later. */
  switchOf(module: string): TraceSwitch {
    return this.#switches.get(module) ?? alwaysOn
  }
}

function unknownModule(module: string): string {
  const known = traceModules.join(', ')
  return `Cannot switch the trace of a module: the name must be all or one of ${known}: it is ${module}`
}
