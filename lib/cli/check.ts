/**
 * The word `check`: looks at the configuration, the route files, the middleware and every action, and prints all that is
 * wrong with its file and place. It starts nothing: modules are loaded, since only that shows what they export, but no
 * `setup` runs.
 *
 * Surprise: what would only be a warning at the start, an action that is not there, is a problem here.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { buildApplication } from '../application.ts'
import { readCertificates } from '../certificates.ts'
import { ConfigError, type LoadedConfig } from '../config/load.ts'
import { describe } from '../control/commands.ts'
import { createStaticFiles } from '../http/static.ts'
import { silentLogger } from '../log/silent.ts'
import { MiddlewareError } from '../middleware/config-file.ts'
import { parseAction } from '../routing/action.ts'
import { readRouteFiles } from '../routing/route-files.ts'
import { ViewError } from '../views/errors.ts'
import { isFileError, textOfFileError } from './failure.ts'

interface Found {
  readonly problems: readonly string[]
  readonly routeCount: number
}

/**
 * Checks and prints.
 * @param load reads the configuration; throws ConfigError
 * @returns the exit status: 0 all is well, 78 something is wrong
 */
export async function check(load: () => LoadedConfig): Promise<number> {
  let loaded: LoadedConfig
  try {
    loaded = load()
  } catch (error) {
    if (!isFileError(error)) throw error
    process.stderr.write(textOfFileError(error))
    return 78
  }
  for (const warning of loaded.warnings) process.stdout.write(`warning: ${warning}\n`)
  const { problems: ofApplication, routeCount } = await inspect(loaded)
  const problems = new Set([...problemsOfFiles(loaded), ...ofApplication])
  for (const problem of problems) process.stderr.write(`problem: ${problem}\n`)
  if (problems.size > 0) return 78
  process.stdout.write(`${loaded.file ?? 'the defaults'}: all is well, ${routeCount} routes\n`)
  return 0
}

/** What the configuration names besides the application: the certificate and the folder of static files. */
function problemsOfFiles(loaded: LoadedConfig): string[] {
  const path = loaded.config['paths.public']
  const problems = problemsOf(() => readCertificates(loaded), ConfigError)
  if (path === '') return problems
  const folder = resolve(loaded.folder, path)
  return [...problems, ...problemsOf(() => createStaticFiles({ folder, onFailure: () => {} }), Error)]
}

async function inspect(loaded: LoadedConfig): Promise<Found> {
  // No compiled views on disk: they would belong to whoever checks, and the server could not renew them.
  const config = { ...loaded.config, cache_disk: false }
  const { application, views } = buildApplication({ ...loaded, config }, () => silentLogger)
  const root = resolve(loaded.folder, config['paths.root'])
  try {
    const found = await application.inspect()
    const problems = [...found.problems, ...found.broken, ...found.warnings].map(describe)
    for (const { record } of found.routes) {
      const { kind, file } = parseAction(record.action)
      if (kind === 'view' && existsSync(resolve(root, file))) problems.push(...problemsOf(() => views.check(file), ViewError))
    }
    return { problems, routeCount: found.routes.length }
  } catch (error) {
    if (!(error instanceof MiddlewareError)) throw error
    return { problems: [error.message, ...routeFileProblems(loaded)], routeCount: 0 }
  }
}

/** What is wrong with the route files for themselves, when nobody can say which middleware there is. */
function routeFileProblems({ config, folder }: LoadedConfig): string[] {
  const root = resolve(folder, config['paths.root'])
  const { problems } = readRouteFiles(resolve(folder, config['paths.routes']), { root, middlewareKnown: () => true })
  return problems.map(describe)
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
