/**
 * The commands `check` and `routes`, which inspect an application without starting it: modules are loaded, since only
 * that reveals their exports, but no `setup` runs.
 *
 * `check` prints all problems of the configuration, the route files, the middleware, every action and every view, and
 * their dead addresses, each with its file and position. A missing action, only a warning when the server starts, is a
 * problem here.
 */
import { existsSync, readdirSync, type Dirent } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { ApplicationParts } from '../composition/application-parts.ts'
import { middlewareConfigOf } from '../composition/application-settings.ts'
import { requireStore } from '../composition/background-jobs.ts'
import { reasonOf } from '../base/reason.ts'
import { chooseAppKey } from '../config/app-key.ts'
import { ConfigError, warningsOfCommittedSecrets, type LoadedConfig } from '../config/load.ts'
import { loadRoom } from '../config/load-room.ts'
import { refuseInconsistent, inconsistencyWarnings } from '../config/together.ts'
import { nodeWarnings } from '../process/safe-node.ts'
import { describe, describeAll } from '../control/commands.ts'
import { isCurrent, routeTypesOf } from '../describe/route-types.ts'
import { Maintenance } from '../application/maintenance.ts'
import { openStaticFiles } from '../application/static-files.ts'
import { silentLogger } from '../log/logger.ts'
import { readCertificates, serverCertificateOf, warningsOfTime } from '../tls/certificates.ts'
import {
  configurationFolder,
  dataFolder,
  foldersOf,
  sessionFolder,
  sessionPathOf,
  unwritable,
  type WrittenFolder,
} from '../composition/written-folders.ts'
import { MiddlewareError } from '../modules/middleware-config.ts'
import { quote } from '../routing/pattern.ts'
import type { Route } from '../routing/route.ts'
import { schemasOf } from '../validation/action.ts'
import { Schema } from '../validation/fields.ts'
import { ViewError } from '../views/template.ts'
import { DeadAddresses } from './dead-addresses.ts'
import { serverFolder } from './server-folder.ts'
import { exitStatus, isFileError, textOfFileError } from '../process/process.ts'

const columns = ['name', 'method', 'url', 'middleware', 'action'] as const
const foldersWithoutViews = ['paths.public', 'paths.cache', 'paths.log', 'paths.temp', 'paths.data'] as const

/**
 * Checks an application and prints its problems.
 * @param load reads the configuration; rejects with ConfigError
 * @returns the exit status: 0 without problems, 78 with some
 */
export async function check(load: () => Promise<LoadedConfig>): Promise<number> {
  const { loaded, problems: configProblems } = await loadOrDefaults(load)
  if (loaded === undefined) return report(configProblems)
  // An empty key may only replace a wrong one: do not warn about it.
  const ofKeys = configProblems.length === 0 ? chooseAppKey(loaded.config).warnings : []
  const ofValues = [...loaded.warnings, ...inconsistencyWarnings(loaded), ...ofKeys]
  printWarnings([...nodeWarnings(), ...ofValues, ...certificateWarnings(loaded)])
  printWarnings([...warningsOfCommittedSecrets(loaded), ...warningsOfTypes(loaded)])
  printWarnings(await warningsOfMaintenance(loaded))
  const overridden = (loaded.overridden ?? []).map((key) => `${loaded.localFile} overrides ${key}`)
  for (const line of [...overridden, ...overriddenSetup(loaded)]) process.stdout.write(`${line}\n`)
  const { problems: applicationProblems, notes, routeCount, usesData } = await inspect(loaded)
  const data = await inspectData(loaded)
  const folderProblems = await unwritable([...foldersToWrite(loaded), ...(usesData ? [dataFolder(loaded)] : [])])
  // Another user, such as systemd, may create a missing folder before the start.
  const missing = folderProblems.filter(({ isMissing }) => isMissing).map(({ line }) => line)
  printWarnings([...notes, ...data.notes, ...missing])
  const folders = folderProblems.filter(({ isMissing }) => !isMissing).map(({ line }) => line)
  const problems = new Set([...configProblems, ...applicationProblems, ...data.problems, ...folders])
  for (const line of data.found) process.stdout.write(`${line}\n`)
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
    const { application } = new ApplicationParts(loaded, chooseAppKey(loaded.config).key, () => silentLogger)
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

/** Returns the problems of inconsistent values, the certificate and the folder of static files. */
function problemsOfFiles(loaded: LoadedConfig): string[] {
  const opened = [refuseInconsistent, readCertificates, (values: LoadedConfig) => openStaticFiles(values, () => {})]
  return opened.flatMap((open) => problemsOf(() => open(loaded), ConfigError))
}

/** Returns a line for each setting of the middleware's `config.json` that the configuration overrides. */
function overriddenSetup(loaded: LoadedConfig): readonly string[] {
  let lines: readonly string[] = []
  problemsOf(() => (lines = middlewareConfigOf(loaded, []).overridden), MiddlewareError) // The inspection reports them.
  return lines
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

/** Returns the warnings about the certificate, if it can be read. */
function certificateWarnings(loaded: LoadedConfig): string[] {
  const warnings: string[] = []
  problemsOf(() => {
    const certificates = readCertificates(loaded)
    if (certificates !== undefined) warnings.push(...warningsOfTime(serverCertificateOf(certificates), Date.now()))
  }, ConfigError)
  return warnings
}

/** Returns the warnings of a server that started now, if it would be in maintenance. */
async function warningsOfMaintenance({ config, folder }: LoadedConfig): Promise<readonly string[]> {
  const file = resolve(folder, config['paths.maintenance'])
  const maintenance = new Maintenance({ file, isAdmin: () => false, onChange: () => {} })
  await maintenance.look()
  return maintenance.warnings()
}

/** Returns the warning about old types of the routes. Problems of the route files are reported elsewhere. */
function warningsOfTypes(loaded: LoadedConfig): string[] {
  const types = routeTypesOf(loaded)
  if (types.problems.length > 0 || isCurrent(types) !== false) return []
  return [`${types.file} does not have the types of the present routes: run svc types`]
}

async function inspect(
  loaded: LoadedConfig,
): Promise<{ problems: readonly string[]; notes: readonly string[]; routeCount: number; usesData: boolean }> {
  // Compiled views on disk would belong to the user who runs the check, and the server could not replace them.
  const config = { ...loaded.config, cache_disk: false }
  const { key } = chooseAppKey(config)
  const parts = new ApplicationParts({ ...loaded, config }, key, () => silentLogger)
  const { application, views, modules, jobs, data } = parts
  const root = resolve(loaded.folder, config['paths.root'])
  const found = await application.inspect()
  const problems = describeAll([...found.problems, ...found.broken, ...found.incomplete], Infinity)
  const notes = describeAll(found.notes)
  const ofServer = ['lib', 'dist'].map((name) => join(serverFolder, name)) // The demo's application is around them.
  const others = new Set([...foldersWithoutViews.map((key) => resolve(loaded.folder, config[key])), ...ofServer])
  if (!existsSync(root)) problems.push(`paths.root: ${root} does not exist`)
  problems.push(...found.routes.flatMap(missingParameters))
  const withoutData = (error: Error): unknown => problems.push(error.message)
  const withoutJobs = (error: Error): unknown => (jobs.current?.areOptional ? notes : problems).push(error.message)
  if (jobs.current !== undefined) await requireStore(loaded).catch(withoutJobs)
  await data.check().catch(withoutData)
  const addresses = new DeadAddresses(root, found, config['admin.enabled'])
  for (const file of modules.files()) problems.push(...addresses.inModule(file))
  for (const file of existsSync(root) ? viewsBelow(root, others, notes) : []) {
    problems.push(...problemsOf(() => views.check(relative(root, file)), ViewError))
    problems.push(...addresses.inView(file))
  }
  const storesJobs = jobs.current !== undefined && config['shared.url'] === ''
  return { problems, notes, routeCount: found.routes.length, usesData: data.isUsed || storesJobs }
}

type DataReport = Record<'found' | 'problems' | 'notes', readonly string[]>
const noData: DataReport = { found: [], problems: [], notes: [] }

/** Reads the database, if there is one, which a server may be using. Returns what is in it and what is wrong. */
async function inspectData({ config, folder }: LoadedConfig): Promise<DataReport> {
  const dataFolder = resolve(folder, config['paths.data'])
  if (!existsSync(dataFolder)) return noData // An installation without databases has no folder.
  try {
    const { inspectDatabase } = await loadRoom('paths.data', () => import('../data/inspect.ts'))
    const { jobStates } = await loadRoom('paths.data', () => import('../jobs/job-store.ts'))
    const content = inspectDatabase(dataFolder)
    if (content === undefined) return noData
    const { path, problem, jobsByState } = content
    if (problem !== undefined) return { ...noData, problems: [problem] }
    const counts = jobStates.map((state, at) => `${jobsByState.get(at) ?? 0} ${state}`)
    return { ...noData, found: [`${path} has jobs: ${counts.join(', ')}`] }
  } catch (error) {
    // This Node or this installation has no SQLite. Whatever needs it is reported as a problem elsewhere.
    return { ...noData, notes: [reasonOf(error)] }
  }
}

/** Returns a line for each parameter that an action requires and its pattern lacks: every request is then a 404. */
function missingParameters({ record, pattern, action }: Route<unknown>): string[] {
  const params = schemasOf(action?.())?.params
  const { required } = params instanceof Schema ? params.toJsonSchema() : { required: undefined }
  const missing = Array.isArray(required) ? required.filter((name: string) => !pattern.names.includes(name)) : []
  return missing.map((name: string) => {
    return `route ${quote(record.name)}: its action requires the parameter ${quote(name)}, which ${pattern.text} lacks`
  })
}

/**
 * Returns every file that an action or a view can name as a view, except in packages, dot folders and `others`.
 * @param notes receives a line for a folder that this user cannot read
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

/** Returns the message of an error of this kind that `work` throws; rethrows any other error. */
function problemsOf(work: () => unknown, kind: new (...args: never[]) => Error): string[] {
  try {
    work()
    return []
  } catch (error) {
    if (!(error instanceof kind)) throw error
    return [error.message]
  }
}
