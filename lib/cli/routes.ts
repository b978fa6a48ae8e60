/**
 * The word `routes`: prints the route table as a server with this configuration would have it.
 */
import { chooseAppKey } from '../config/app-key.ts'
import { buildApplication } from '../application/build.ts'
import type { LoadedConfig } from '../config/load.ts'
import { describe } from '../control/commands.ts'
import { silentLogger } from '../log/logger.ts'
import { isFileError, textOfFileError } from './failure.ts'

const columns = ['name', 'method', 'url', 'middleware', 'action'] as const

/**
 * Prints a row a route, in the order of registration; what cannot be registered goes to standard error.
 * @param load reads the configuration; throws ConfigError
 * @returns the exit status: 0, or 78 when a configuration, route or middleware file is wrong
 */
export async function printRoutes(load: () => LoadedConfig): Promise<number> {
  try {
    const loaded = load()
    const { application } = buildApplication(loaded, chooseAppKey(loaded.config).key, () => silentLogger)
    const { routes, problems } = await application.inspect()
    const rows = [columns, ...routes.map(({ record }) => columns.map((column) => record[column] || '-'))]
    const widths = columns.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
    for (const row of rows) {
      process.stdout.write(`${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ').trimEnd()}\n`)
    }
    for (const problem of problems) process.stderr.write(`left out: ${describe(problem)}\n`)
    return problems.length > 0 ? 78 : 0
  } catch (error) {
    if (!isFileError(error)) throw error
    process.stderr.write(textOfFileError(error))
    return 78
  }
}
