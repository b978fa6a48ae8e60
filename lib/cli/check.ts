/**
 * The commands `check` and `routes`, which inspect an application without starting it: modules are loaded, since only
 * that shows what they export, but no `setup` runs.
 *
 * `check` prints all problems of the configuration, the route files, the middleware and every action, each with its
 * file and place. A missing action, which is only a warning when the server starts, is a problem here.
 */
import { existsSync, readdirSync, type Dirent } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { buildApplication } from '../composition/build.ts'
import { reasonOf } from '../base/reason.ts'
import { chooseAppKey } from '../config/app-key.ts'
import { ConfigError, type LoadedConfig } from '../config/load.ts'
import { refuseTogether, warningsTogether } from '../config/together.ts'
import { describe, describeAll } from '../control/commands.ts'
import { openStaticFiles } from '../application/static-files.ts'
import { silentLogger } from '../log/logger.ts'
import { readCertificates, serverCertificateOf, warningsOfTime } from '../tls/certificates.ts'
import {
  configurationFolder,
  foldersOf,
  sessionFolder,
  sessionPathOf,
  unwritable,
  type WrittenFolder,
} from '../composition/written-folders.ts'
import { MiddlewareError } from '../modules/middleware-config.ts'
import { ViewError } from '../views/template.ts'
import { exitStatus, isFileError, textOfFileError } from './process.ts'

const columns = ['name', 'method', 'url', 'middleware', 'action'] as const
const foldersWithoutViews = ['paths.public', 'paths.cache', 'paths.log', 'paths.temp'] as const

/**
 * Checks an application and prints its problems.
 * @param load reads the configuration; rejects with ConfigError
 * @returns the exit status: 0 without problems, 78 with some
 */
export async function check(load: () => Promise<LoadedConfig>): Promise<number> {
  const { loaded, problems: ofConfig } = await loadOrDefaults(load)
  if (loaded === undefined) return report(ofConfig)
  // A wrong key has been replaced by an empty one, about which nothing is to be said.
  const ofKeys = ofConfig.length === 0 ? chooseAppKey(loaded.config).warnings : []
  printWarnings([...loaded.warnings, ...warningsTogether(loaded), ...ofKeys, ...ofCertificate(loaded)])
  for (const key of loaded.overridden ?? []) process.stdout.write(`${loaded.localFile} overrides ${key}\n`)
  const { problems: ofApplication, notes, routeCount } = await inspect(loaded)
  const ofFolders = await unwritable(foldersToWrite(loaded))
  // A folder that is not there may be made before the start by another user, as systemd does.
  printWarnings([...notes, ...ofFolders.filter(({ isMissing }) => isMissing).map(({ line }) => line)])
  const folders = ofFolders.filter(({ isMissing }) => !isMissing).map(({ line }) => line)
  const problems = new Set([...ofConfig, ...ofApplication, ...folders])
  if (problems.size > 0) return report(problems)
  process.stdout.write(`${loaded.file ?? 'the defaults'}: all is well, ${routeCount} routes\n`)
  return exitStatus.ok
}

/**
 * Prints the route table that a server with this configuration would have, a row for each route in the order of
 * registration. Routes that cannot be registered go to standard error.
 * @param load reads the configuration; rejects with ConfigError
 * @returns the exit status: 0, or 78 when a configuration, route or middleware file is wrong
 */
export async function printRoutes(load: () => Promise<LoadedConfig>): Promise<number> {
  try {
    const loaded = await load()
    const { application } = buildApplication(loaded, chooseAppKey(loaded.config).key, () => silentLogger)
    const { routes, problems } = await application.inspect()
    const rows = [columns, ...routes.map(({ record }) => columns.map((column) => record[column] || '-'))]
    const widths = columns.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
    for (const row of rows) {
      process.stdout.write(`${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ').trimEnd()}\n`)
    }
    for (const problem of problems) process.stderr.write(`left out: ${describe(problem)}\n`)
    return problems.length > 0 ? exitStatus.config : exitStatus.ok
  } catch (error) {
    if (!isFileError(error)) throw error
    process.stderr.write(textOfFileError(error))
    return exitStatus.config
  }
}

function printWarnings(warnings: readonly string[]): void {
  for (const warning of warnings) process.stdout.write(`warning: ${warning}\n`)
}

function report(problems: Iterable<string>): number {
  for (const problem of problems) process.stderr.write(`problem: ${problem}\n`)
  return exitStatus.config
}

/** Reads the configuration. Wrong values are replaced by their defaults, so that the files they name can be checked. */
async function loadOrDefaults(
  load: () => Promise<LoadedConfig>,
): Promise<{ loaded: LoadedConfig | undefined; problems: readonly string[] }> {
  try {
    const loaded = await load()
    return { loaded, problems: problemsOfFiles(loaded) }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const { rest, message } = error
    return { loaded: rest, problems: [message, ...(rest === undefined ? [] : problemsOfFiles(rest))] }
  }
}

/** The problems of values that do not go together, of the certificate and of the folder of static files. */
function problemsOfFiles(loaded: LoadedConfig): string[] {
  const opened = [refuseTogether, readCertificates, (values: LoadedConfig) => openStaticFiles(values, () => {})]
  return opened.flatMap((open) => problemsOf(() => open(loaded), ConfigError))
}

function foldersToWrite(loaded: LoadedConfig): WrittenFolder[] {
  const { config, file } = loaded
  let sessions: string | undefined
  problemsOf(() => (sessions = sessionPathOf(loaded)), MiddlewareError) // The inspection reports them.
  const [user, password, secret] = [config['admin.user'], config['admin.password'], config['admin.secret']]
  return [
    ...foldersOf(loaded),
    ...(sessions === undefined ? [] : [sessionFolder(sessions)]),
    ...configurationFolder(loaded, file, { user, password, secret }),
  ]
}

/** The warnings of the certificate, if it can be read. */
function ofCertificate(loaded: LoadedConfig): string[] {
  const warnings: string[] = []
  problemsOf(() => {
    const certificates = readCertificates(loaded)
    if (certificates !== undefined) warnings.push(...warningsOfTime(serverCertificateOf(certificates), Date.now()))
  }, ConfigError)
  return warnings
}

async function inspect(
  loaded: LoadedConfig,
): Promise<{ problems: readonly string[]; notes: readonly string[]; routeCount: number }> {
  // Compiled views on disk would belong to the user who checks, and the server could not replace them.
  const config = { ...loaded.config, cache_disk: false }
  const { application, views } = buildApplication({ ...loaded, config }, chooseAppKey(config).key, () => silentLogger)
  const root = resolve(loaded.folder, config['paths.root'])
  const found = await application.inspect()
  const problems = describeAll([...found.problems, ...found.broken, ...found.incomplete], Infinity)
  const notes = describeAll(found.notes)
  const others = new Set(foldersWithoutViews.map((key) => resolve(loaded.folder, config[key])))
  if (!existsSync(root)) problems.push(`paths.root: ${root} is not there`)
  for (const file of existsSync(root) ? viewsBelow(root, others, notes) : []) {
    problems.push(...problemsOf(() => views.check(relative(root, file)), ViewError))
  }
  return { problems, notes, routeCount: found.routes.length }
}

/**
 * Every file that an action or a view can name as a view; not those of packages, in dot folders and in `others`.
 * @param notes gets a line for a folder that this user cannot read
 */
function viewsBelow(folder: string, others: ReadonlySet<string>, notes: string[]): string[] {
  let entries: Dirent[] = []
  try {
    entries = readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    notes.push(`views: this user cannot read ${folder}: ${reasonOf(error)}`)
  }
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isFile()) return entry.name.endsWith('.html') ? [path] : []
    const isSearched =
      entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.') && !others.has(path)
    return isSearched ? viewsBelow(path, others, notes) : []
  })
}

/** The messages of the errors that `work` throws when a file is wrong; rethrows any other error. */
function problemsOf(work: () => unknown, kind: new (...args: never[]) => Error): string[] {
  try {
    work()
    return []
  } catch (error) {
    if (!(error instanceof kind)) throw error
    return [error.message]
  }
}
