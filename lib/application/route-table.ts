/**
 * The application's routes: those of the route files, and over them the routes of the desired state, which were added
 * or deleted at run time.
 */
import type { Chain } from '../chain/compose.ts'
import type { GoodRecord } from './record.ts'
import { NameTakenError, type Registry } from '../routing/registry.ts'
import type { Route } from '../routing/route.ts'
import { RouteRefusedError, type AddResult } from '../control/commands.ts'
import type { RouteEntry } from '../control/desired-state.ts'
import type { BuiltRoute } from './route-builder.ts'

/** A route of the desired state, built. */
export type BuiltEntry = BuiltRoute & Pick<GoodRecord, 'warnings'>

/** The routes of the files, and the built routes of the entries, by {@link keyOf}. */
export interface RouteSources {
  readonly files: readonly Route<Chain>[]
  readonly built: ReadonlyMap<string, BuiltEntry>
}

/**
 * Builds the routes of the entries of a state.
 * @param known the routes built before
 * @param build rejects with RouteRefusedError
 */
export async function buildEntries(
  entries: readonly RouteEntry[],
  known: RouteSources['built'],
  build: (record: unknown) => Promise<BuiltEntry>,
): Promise<RouteSources['built']> {
  const built = new Map<string, BuiltEntry>()
  for (const entry of entries) {
    const key = keyOf(entry)
    if (entry.record !== undefined) built.set(key, known.get(key) ?? (await build(entry.record)))
  }
  return built
}

/**
 * Returns all routes in order: those of the files that no entry deletes, then those that only entries contain.
 * @throws RouteRefusedError for an entry whose name a different record in the files has
 */
export function joinRoutes({ files, built }: RouteSources, entries: readonly RouteEntry[]): readonly Route<Chain>[] {
  const hidden = new Set(entries.filter((entry) => entry.record === undefined || entry.hides).map(({ name }) => name))
  const inFiles = files.filter(({ record }) => !hidden.has(record.name))
  const records = new Map(inFiles.map(({ record }) => [record.name, record]))
  const added = entries.flatMap((entry) => {
    const route = built.get(keyOf(entry))?.route
    if (route === undefined) return []
    const existing = records.get(entry.name)
    if (existing === undefined) return [route]
    if (JSON.stringify(existing) === JSON.stringify(route.record)) return []
    throw new RouteRefusedError(entry.name, false, [new NameTakenError(entry.name).message])
  })
  return [...inFiles, ...added]
}

/** Returns the results of the entries not built before, by name; their routes must be in the registry. */
export function resultsOf(
  built: RouteSources['built'],
  known: RouteSources['built'],
  registry: Registry<Chain>,
): ReadonlyMap<string, AddResult> {
  const fresh = [...built].filter(([key]) => !known.has(key))
  return new Map(fresh.map(([, entry]) => {
    const { name } = entry.route.record
    return [name, { name, warnings: warningsOf(entry, registry) }]
  }))
}

/** Returns why a route cannot serve yet, and which route shadows it. */
function warningsOf({ route, warnings, problem }: BuiltEntry, registry: Registry<Chain>): readonly string[] {
  const hiding = registry.shadowedBy(route)?.record.name
  return [
    ...warnings,
    ...(problem === undefined ? [] : [problem]),
    ...(hiding === undefined ? [] : [`route "${hiding}" answers this method and pattern already`]),
  ]
}

/** Returns the key of an entry; two states of one version may have different records with one name. */
function keyOf({ at, record }: RouteEntry): string {
  return `${at} ${JSON.stringify(record)}`
}
