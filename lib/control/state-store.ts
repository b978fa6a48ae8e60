/**
 * The store of the desired state: in this process (here), in the primary of several processes, or in the shared engine
 * of several machines (`lib/cluster/`).
 */
import { performance } from 'node:perf_hooks'
import type { MaybePromise } from '../base/maybe-promise.ts'
import { initialState, type DesiredState } from './desired-state.ts'
import { changeRouteFile, type RouteFileChange } from './persisted-routes.ts'
import type { UsedCodesFile } from './used-codes-file.ts'

/** The contract of a state store. */
export interface StateStore {
  /** Whether several machines, each with its own route files, share the state. */
  readonly isShared: boolean
  /** The time in milliseconds since 1970 by the clock of the state, which is monotonic while the store exists. */
  nowMs(): number
  /** Returns the latest state. Rejects with HttpError 503 while it is unknown. */
  read(): MaybePromise<DesiredState>
  /**
   * Replaces the state that `next` derives from (`next.ancestors[0]`), and changes `admin.json` and `totp-used` of this
   * machine too.
   * Rejects with RoutesUnsavedError when the file cannot be written, with HttpError 503 when the state cannot; then
   * nothing has changed.
   * @returns false if another process has changed the state in the meantime; then nothing has changed here
   */
  write(next: DesiredState, file?: RouteFileChange): MaybePromise<boolean>
  /**
   * Waits until every live process has applied a state, or one that descends from it.
   * @param withinMs the longest wait, in milliseconds
   * @returns a line for each process that has not, with the reason
   */
  missing(state: DesiredState, withinMs: number): MaybePromise<readonly string[]>
}

/** Keeps the state of one machine in this process. */
export class LocalStateStore implements StateStore {
  readonly isShared = false
  readonly #routesFolder: string
  readonly #usedCodesFile: UsedCodesFile
  #state = initialState

  /** @param routesFolder `paths.routes`, absolute */
  constructor(routesFolder: string, usedCodesFile: UsedCodesFile) {
    this.#routesFolder = routesFolder
    this.#usedCodesFile = usedCodesFile
  }

  nowMs(): number {
    return performance.timeOrigin + performance.now()
  }

  read(): DesiredState {
    return this.#state
  }

  write(next: DesiredState, file?: RouteFileChange): boolean {
    if ((next.ancestors[0] ?? '') !== this.#state.stamp) return false
    if (file !== undefined) changeRouteFile(this.#routesFolder, file)
    this.#usedCodesFile.follow(this.#state, next)
    this.#state = next
    return true
  }

  missing(): readonly string[] {
    return []
  }
}
