/**
 * Routes that come and go while the server runs, one at a time, by the admin panel.
 *
 * Surprise: what is to last is written to disk before it is registered: an answer that says yes is true after a crash
 * too.
 */
import { RouteRefusedError, type AddResult } from '../control/commands.ts'
import type { Chain } from '../chain/compose.ts'
import type { MiddlewareSet } from './middleware-host.ts'
import { forgetRoute, persistedFile, persistRoute } from './persisted-routes.ts'
import { isSameRecord, parseRecord, type GoodRecord, type RecordRules } from '../routing/record.ts'
import { NameTakenError, type Registry } from '../routing/registry.ts'
import type { RouteBuilder } from './route-builder.ts'
import { readRouteFiles } from './route-files.ts'

export interface RunTimeRoutesOptions {
  /** `paths.root`, absolute. */
  readonly root: string
  /** `paths.routes`, absolute. */
  readonly routesFolder: string
  readonly registry: Registry<Chain>
  readonly builder: RouteBuilder
  /** The middleware in use. */
  readonly middleware: () => MiddlewareSet
  /** The records that other machines keep, by name: no file here has them, and a reload loads them all the same. */
  readonly kept: Map<string, unknown>
}

/** Adds and removes single routes. */
export class RunTimeRoutes {
  readonly #options: RunTimeRoutesOptions

  constructor(options: RunTimeRoutesOptions) {
    this.#options = options
  }

  /**
   * Registers a route.
   * @param record a route record as a client sent it
   * @param persist whether to write it to `admin.json` as well
   * @throws RouteRefusedError with all that is wrong; RoutesUnsavedError when `admin.json` cannot be written. Nothing
   *   has changed then.
   */
  async add(record: unknown, persist: boolean): Promise<AddResult> {
    const { routesFolder, registry, builder } = this.#options
    const middleware = this.#options.middleware()
    const rules = this.#rules(middleware)
    const parsed = this.#parse(record, rules)
    const { name } = parsed.record
    const { route, problem } = await builder.batch(middleware)(parsed)
    if (registry.get(name) !== undefined) throw new RouteRefusedError(name, false, [new NameTakenError(name).message])
    if (persist) refuseNameOfFile(name, routesFolder, rules)
    const hiding = registry.shadowedBy(route)
    if (persist) persistRoute(routesFolder, parsed.record)
    registry.add(route)
    const warnings = [...parsed.warnings]
    if (problem !== undefined) warnings.push(problem)
    if (hiding !== undefined) warnings.push(`route "${hiding.record.name}" answers this method and pattern already`)
    return { name, warnings }
  }

  /**
   * Registers a route that another process of the server has registered. One that has come with the files by now is
   * there.
   * @param lasts whether another machine keeps it: it is one of `kept` from now on
   * @throws RouteRefusedError as `add` does
   */
  async take(record: unknown, lasts = false): Promise<void> {
    const parsed = this.#parse(record, this.#rules(this.#options.middleware()))
    const present = this.#options.registry.get(parsed.record.name)
    if (present === undefined || !isSameRecord(present.record, parsed.record)) await this.add(record, false)
    if (lasts) this.#options.kept.set(parsed.record.name, record)
  }

  /**
   * Removes an application's route, also from `admin.json`. Returns whether there was one.
   * @throws RoutesUnsavedError when `admin.json` cannot be written; nothing has changed then
   */
  remove(name: string): boolean {
    const { routesFolder, registry } = this.#options
    if (registry.get(name)?.system === true) throw new RangeError(`"${name}" is a system route: it cannot be removed`)
    const forgotten = forgetRoute(routesFolder, name)
    this.#options.kept.delete(name)
    return registry.remove(name) || forgotten
  }

  /**
   * Removes a route that another process has removed.
   * @param inFiles whether that was on another machine, so that this one's `admin.json` may still have it
   * @throws RoutesUnsavedError as `remove` does
   */
  drop(name: string, inFiles: boolean): void {
    if (inFiles) return void this.remove(name)
    this.#options.kept.delete(name)
    this.#options.registry.remove(name)
  }

  #rules(middleware: MiddlewareSet): RecordRules {
    return {
      root: this.#options.root,
      middlewareKnown: (name) => middleware.byName.has(name),
      middlewareNames: () => middleware.byName.keys(),
    }
  }

  #parse(record: unknown, rules: RecordRules): GoodRecord {
    const parsed = parseRecord(record, rules)
    if (!('record' in parsed)) throw new RouteRefusedError(parsed.name, parsed.reserved, parsed.problems)
    return parsed
  }
}

/** A name in two route files fails every reload, and at a start hides one of the two. */
function refuseNameOfFile(name: string, routesFolder: string, rules: RecordRules): void {
  for (const { file, records } of readRouteFiles(routesFolder, rules).files) {
    if (file === persistedFile || records.every(({ record }) => record.name !== name)) continue
    const problem = `Cannot keep route "${name}": ${file} has one of that name: change it there or choose another name`
    throw new RouteRefusedError(name, false, [problem])
  }
}
