/**
 * The trace switches: one per module of the server. They suppress DEBUG and INFO lines; WARN and above always pass.
 *
 * Surprise: a module that is not in the list (an application's own) has no switch and always passes.
 */

/** The modules with a switch, in display order. */
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

/** One switch, as a logger holds it: `on` is always the current state. */
interface TraceSwitch {
  readonly on: boolean
}

const alwaysOn: TraceSwitch = Object.freeze({ on: true })

/** The state of all switches. */
export class Trace {
  readonly #switches = new Map<string, { on: boolean }>()

  /**
   * @param initial the switches that do not start on, by name; `all` sets every switch, later names override it
   * @throws RangeError when a name is unknown
   */
  constructor(initial: Readonly<Record<string, boolean>> = {}) {
    for (const module of traceModules) this.#switches.set(module, { on: true })
    for (const [module, enabled] of Object.entries(initial)) this.set(module, enabled)
  }

  /** Returns a new object: for each module, whether its switch is on. */
  state(): Record<string, boolean> {
    return Object.fromEntries([...this.#switches].map(([module, { on }]) => [module, on]))
  }

  /**
   * Sets one switch, or with `all` every switch.
   * @throws RangeError that names the known modules for an unknown name
   */
  set(module: string, enabled: boolean): void {
    this.check(module)
    for (const [name, each] of this.#switches) if (module === 'all' || module === name) each.on = enabled
  }

  /**
   * Checks the name of a module.
   * @throws RangeError that names the known modules for an unknown name other than `all`
   */
  check(module: string): void {
    if (module !== 'all' && !this.#switches.has(module)) throw new RangeError(unknownModule(module))
  }

  /** Returns the switch of a module, which shows at any time whether its DEBUG and INFO lines pass. */
  switchOf(module: string): TraceSwitch {
    return this.#switches.get(module) ?? alwaysOn
  }
}

function unknownModule(module: string): string {
  const known = traceModules.join(', ')
  return `Cannot set a trace switch: the module must be all or one of ${known}: it is ${module}`
}
