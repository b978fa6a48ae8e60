/**
 * The command `types`: writes the types of the routes beside the configuration, or says whether they are old.
 */
import { reasonOf } from '../base/reason.ts'
import type { LoadedConfig } from '../config/load.ts'
import { describeAll } from '../control/commands.ts'
import { isCurrent, routeTypesOf, writeRouteTypes } from '../describe/route-types.ts'
import { exitStatus, isFileError, textOfFileError } from '../process/process.ts'

/**
 * Runs the command and prints its result.
 * @param load reads the configuration; rejects with ConfigError
 * @param checks whether to write nothing
 * @returns the exit status: 0; 1 when the types are old or missing, or cannot be written; 78 when the configuration or
 *   a route file is wrong
 */
export async function types(load: () => Promise<LoadedConfig>, checks: boolean): Promise<number> {
  try {
    const found = routeTypesOf(await load())
    const { file, problems } = found
    if (problems.length > 0) {
      for (const problem of describeAll(problems, Infinity)) process.stderr.write(`problem: ${problem}\n`)
      return exitStatus.config
    }
    const current = isCurrent(found)
    if (checks && current !== true) {
      process.stderr.write(`${file} ${current === false ? 'is old' : 'does not exist'}: run svc types\n`)
      return exitStatus.failed
    }
    if (current !== true) writeRouteTypes(found)
    process.stdout.write(`${file}: ${current === true ? 'is up to date' : 'written'}\n`)
    return exitStatus.ok
  } catch (error) {
    const isOfFile = isFileError(error)
    if (!isOfFile && (error as NodeJS.ErrnoException).syscall === undefined) throw error
    process.stderr.write(isOfFile ? textOfFileError(error) : `${reasonOf(error)}\n`)
    return isOfFile ? exitStatus.config : exitStatus.failed
  }
}
