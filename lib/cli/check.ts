/**
 * The word `check`: looks at the configuration, the route files, the middleware and every action, and prints all that is
 * wrong with its file and place. It starts nothing: modules are loaded, since only that shows what they export, but no
 * `setup` runs.
 *
 * Surprise: what would only be a warning at the start, an action that is not there, is a problem here.
 */
import { buildApplication } from '../application.ts'
import { ConfigError, type LoadedConfig } from '../config/load.ts'
import { describe } from '../control/commands.ts'
import { silentLogger } from '../log/silent.ts'
import { MiddlewareError } from '../middleware/config-file.ts'
import { parseAction } from '../routing/action.ts'
import { ViewError } from '../views/errors.ts'

/**
 * Checks and prints.
 * @param load reads the configuration; throws ConfigError
 * @returns the exit status: 0 all is well, 78 something is wrong
 */
export async function check(load: () => LoadedConfig): Promise<number> {
  try {
    const loaded = load()
    for (const warning of loaded.warnings) process.stdout.write(`warning: ${warning}\n`)
    const { application, views } = buildApplication(loaded, () => silentLogger)
    const found = await application.inspect()
    const problems = [...found.problems, ...found.broken, ...found.warnings].map(describe)
    for (const { record } of found.routes) {
      const { kind, file } = parseAction(record.action)
      if (kind === 'view') problems.push(...problemsOf(() => views.check(file)))
    }
    for (const problem of new Set(problems)) process.stderr.write(`problem: ${problem}\n`)
    if (problems.length > 0) return 78
    process.stdout.write(`${loaded.file ?? 'the defaults'}: all is well, ${found.routes.length} routes\n`)
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof MiddlewareError)) throw error
    process.stderr.write(`problem: ${error.message}\n`)
    return 78
  }
}

function problemsOf(compile: () => void): string[] {
  try {
    compile()
    return []
  } catch (error) {
    if (!(error instanceof ViewError)) throw error
    return [error.message]
  }
}
