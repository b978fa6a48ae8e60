/**
 * Applies a desired state to this process: its routes, its trace switches, its admin credentials.
 *
 * A state is applied atomically: routes are built aside first, and the remaining steps cannot fail.
 */
import type { CredentialStore } from '../access/credential-store.ts'
import { SerialQueue } from '../base/serial-queue.ts'
import type { TraceSwitches } from './trace-switches.ts'
import type { Application, Inspection } from '../application/application.ts'
import type { AddResult, ReloadResult } from './commands.ts'
import { initialState, type DesiredState } from './desired-state.ts'

/** The result of applying a state. */
export interface Outcome {
  /** Absent if the route files were not read. */
  readonly reload?: ReloadResult
  /** The routes that were registered one by one, by name. */
  readonly added: ReadonlyMap<string, AddResult>
}

interface ReconcilerOptions {
  readonly application: Pick<Application<unknown>, 'start' | 'reload' | 'apply'>
  readonly trace: TraceSwitches
  readonly credentials: CredentialStore
}

/** Holds the state that this process has applied. */
export class Reconciler {
  readonly #options: ReconcilerOptions
  readonly #inTurn = new SerialQueue()
  #applied = initialState
  #setLoaded = (): void => {}
  readonly #isLoaded = new Promise<void>((resolve) => (this.#setLoaded = resolve))

  constructor(options: ReconcilerOptions) {
    this.#options = options
  }

  /**
   * Loads the application for the first time, which counts as the state's last reload. Rejects as `Application.start`
   * does.
   */
  async start({ reload }: DesiredState): Promise<Inspection> {
    const inspection = await this.#options.application.start()
    this.#applied = { ...this.#applied, reload }
    this.#setLoaded()
    return inspection
  }

  /**
   * Runs state changes one after the other.
   * @param work receives a function that applies a state. If that function rejects, as `Application.apply` and
   *   `Application.reload` do, the process keeps its previous state
   */
  inTurn<Result>(work: (apply: (state: DesiredState) => Promise<Outcome>) => Promise<Result>): Promise<Result> {
    return this.#inTurn.run(() => work((state) => this.#apply(state)))
  }

  /**
   * Applies a state from another process, unless this process has a later one. Waits until the application is
   * loaded. Rejects as above.
   * @returns whether the state has changed
   */
  async follow(state: DesiredState): Promise<boolean> {
    await this.#isLoaded
    return this.inTurn(async (apply) => {
      const { version, stamp } = this.#applied
      if (stamp === state.stamp || version > state.version) return false
      await apply(state)
      return true
    })
  }

  async #apply(state: DesiredState): Promise<Outcome> {
    const { application, trace, credentials } = this.#options
    const before = this.#applied
    if (state.stamp === before.stamp && state.reload === before.reload) return { added: new Map() }
    let outcome: Outcome = { added: new Map() }
    if (state.reload !== before.reload) outcome = { ...outcome, reload: await application.reload(state.routes) }
    else if (state.routes !== before.routes) outcome = { added: await application.apply(state.routes) }
    trace.apply(state.trace)
    credentials.share(state.credentials)
    this.#applied = state
    return outcome
  }
}
