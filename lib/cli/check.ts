/**
 * The word `check`: looks at the configuration, the route files, the middleware and every action, and prints all that
 * is wrong with its file and place. It starts nothing: modules are loaded, since only that shows what they export, but
 * no `setup` runs.
 *
 * Surprise: what would only be a warning at the start, an action that is not there, is a problem here.
 */
import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { chooseAppKey } from '../config/app-key.ts'
import { buildApplication } from '../application/build.ts'
import { ConfigError, type LoadedConfig } from '../config/load.ts'
import { warningsTogether } from '../config/together.ts'
import { describeAll } from '../application/commands.ts'
import { silentLogger } from '../log/silent.ts'
import { openNamedFiles } from '../application/named-files.ts'
import { ViewError } from '../views/template.ts'

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
  for (const warning of [...loaded.warnings, ...warningsTogether(loaded), ...ofKeys]) {
    process.stdout.write(`warning: ${warning}\n`)
  }
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
    if (!(error instanceof ConfigError)) throw error
    return { loaded: error.rest, problems: [error.message] }
  }
}

async function inspect(loaded: LoadedConfig): Promise<Found> {
  // No compiled views on disk: they would belong to whoever checks, and the server could not renew them.
  const config = { ...loaded.config, cache_disk: false }
  const { application, views } = buildApplication({ ...loaded, config }, chooseAppKey(config).key, () => silentLogger)
  const root = resolve(loaded.folder, config['paths.root'])
  const found = await application.inspect()
  const problems = describeAll([...found.problems, ...found.broken, ...found.incomplete])
  const notViews = new Set(
    (['paths.public', 'paths.cache', 'paths.log', 'paths.temp'] as const).map((key) =>
      resolve(loaded.folder, config[key]),
    ),
  )
  for (const file of viewsBelow(root, notViews)) {
    problems.push(...problemsOf(() => views.check(relative(root, file)), ViewError))
  }
  return { problems, notes: [...describeAll(found.notes), ...unwritable(loaded)], routeCount: found.routes.length }
}

/**
 * Every file that an action or a view can name as a view, but for what is of others: packages, dot folders, static
 * files.
 */
function viewsBelow(folder: string, others: ReadonlySet<string>): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isFile()) return entry.name.endsWith('.html') ? [path] : []
    const isOurs =
      entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.') && !others.has(path)
    return isOurs ? viewsBelow(path, others) : []
  })
}

/** A note where this user could not write the logs. The server may run as another one. */
function unwritable({ config, folder }: LoadedConfig): string[] {
  let place = resolve(folder, config['paths.log'])
  while (!existsSync(place)) place = dirname(place)
  try {
    accessSync(place, constants.W_OK | constants.X_OK)
    return []
  } catch (error) {
    return [`paths.log: this user cannot write ${place}: ${(error as Error).message}`]
  }
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
