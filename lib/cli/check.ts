/**
 * The word `check`: looks at the configuration, the route files, the middleware and every action, and prints all that is
 * wrong with its file and place. It starts nothing: modules are loaded, since only that shows what they export, but no
 * `setup` runs.
 *
 * Surprise: what would only be a warning at the start, an action that is not there, is a problem here.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { chooseAppKey } from '../app-key.ts'
import { buildApplication } from '../application.ts'
import { ConfigError, type LoadedConfig } from '../config/load.ts'
import { warningsTogether } from '../config/together.ts'
import { describe } from '../control/commands.ts'
import { silentLogger } from '../log/silent.ts'
import { openNamedFiles } from '../named-files.ts'
import { parseAction } from '../routing/action.ts'
import { ViewError } from '../views/errors.ts'
import { isConfigError } from './failure.ts'

interface Found {
  readonly problems: readonly string[]
  /** What does no harm. */
  readonly notes: readonly string[]
  readonly routeCount: number
}

/**
 * Checks and prints.
 * @param load reads the configuration; throws ConfigError
 * @returns the exit status: 0 all is well, 78 something is wrong
 */
export async function check(load: () => LoadedConfig): Promise<number> {
  const { loaded, problems: ofConfig } = loadOrLookOn(load)
  if (loaded === undefined) return report(ofConfig)
  // A key that is wrong is not empty, but is not there either: of that nothing is said.
  const ofKeys = ofConfig.length === 0 ? chooseAppKey(loaded.config).warnings : []
  for (const warning of [...loaded.warnings, ...warningsTogether(loaded), ...ofKeys]) process.stdout.write(`warning: ${warning}\n`)
  const { problems: ofApplication, notes, routeCount } = await inspect(loaded)
  for (const note of notes) process.stdout.write(`warning: ${note}\n`)
  const problems = new Set([...ofConfig, ...ofApplication])
  if (problems.size > 0) return report(problems)
  process.stdout.write(`${loaded.file ?? 'the defaults'}: all is well, ${routeCount} routes\n`)
  return 0
}

function report(problems: Iterable<string>): number {
  for (const problem of problems) process.stderr.write(`problem: ${problem}\n`)
  return 78
}

/** The configuration; where values are wrong, what they name is looked at with the defaults in their place. */
function loadOrLookOn(load: () => LoadedConfig): { loaded: LoadedConfig | undefined; problems: readonly string[] } {
  try {
    const loaded = load()
    return { loaded, problems: problemsOf(() => openNamedFiles(loaded, () => {}), ConfigError) }
  } catch (error) {
    if (!isConfigError(error)) throw error
    return { loaded: error.rest, problems: [error.message] }
  }
}

async function inspect(loaded: LoadedConfig): Promise<Found> {
  // No compiled views on disk: they would belong to whoever checks, and the server could not renew them.
  const config = { ...loaded.config, cache_disk: false }
  const { application, views } = buildApplication({ ...loaded, config }, chooseAppKey(config).key, () => silentLogger)
  const root = resolve(loaded.folder, config['paths.root'])
  const found = await application.inspect()
  const problems = [...found.problems, ...found.broken, ...found.incomplete].map(describe)
  for (const { record } of found.routes) {
    const { kind, file } = parseAction(record.action)
    if (kind === 'view' && existsSync(resolve(root, file))) problems.push(...problemsOf(() => views.check(file), ViewError))
  }
  return { problems, notes: found.notes.map(describe), routeCount: found.routes.length }
}

/** The message of an error of the kind that work throws when a file is wrong. */
function problemsOf(work: () => unknown, kind: new (...args: never[]) => Error): string[] {
  try {
    work()
    return []
  } catch (error) {
    if (!(error instanceof kind)) throw error
    return [error.message]
  }
}
