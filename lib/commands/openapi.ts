/**
 * The command `openapi`: prints the OpenAPI description of an application. Modules are loaded, since they declare what
 * their actions take and return, but no `setup` runs.
 */
import { writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { ApplicationParts } from '../composition/application-parts.ts'
import { middlewareConfigOf } from '../composition/application-settings.ts'
import { chooseAppKey } from '../config/app-key.ts'
import type { LoadedConfig } from '../config/load.ts'
import { describeAll } from '../control/commands.ts'
import { describeApplication } from '../describe/openapi.ts'
import { replaceFileSync } from '../files/replace-file.ts'
import { silentLogger } from '../log/logger.ts'
import { MiddlewareError } from '../modules/middleware-config.ts'
import { exitStatus, isFileError, textOfFileError } from '../process/process.ts'

/**
 * Runs the command. Names everything that cannot be loaded or described on standard error, and describes the rest.
 * @param load reads the configuration; rejects with ConfigError
 * @param out the file to write; undefined: standard output
 * @returns the exit status: 0; 1 when the file cannot be written; 78 when a file of the application is wrong
 */
export async function openapi(load: () => Promise<LoadedConfig>, out: string | undefined): Promise<number> {
  try {
    const loaded = await load()
    const { application, builtIn } = new ApplicationParts(loaded, chooseAppKey(loaded.config).key, () => silentLogger)
    const { routes, problems, broken, incomplete } = await application.inspect()
    const setup = setupOf(loaded, builtIn.groups.map(({ name }) => name))
    const description = describeApplication({ routes, folder: loaded.folder, setup })
    const faults = describeAll([...problems, ...broken, ...incomplete], Infinity)
    for (const fault of faults) process.stderr.write(`problem: ${fault}\n`)
    for (const problem of description.problems) process.stderr.write(`warning: ${problem}\n`)
    const text = `${JSON.stringify(description.below(loaded.config['server.prefix']), null, 2)}\n`
    if (out === undefined) process.stdout.write(text)
    else if (!write(out, text)) return exitStatus.failed
    return faults.length > 0 ? exitStatus.config : exitStatus.ok
  } catch (error) {
    if (!isFileError(error)) throw error
    process.stderr.write(textOfFileError(error))
    return exitStatus.config
  }
}

/** The settings of the built-in middleware; none if the file is wrong, which the inspection reports. */
function setupOf(loaded: LoadedConfig, groups: readonly string[]): Readonly<Record<string, unknown>> {
  try {
    return middlewareConfigOf(loaded, groups).setup
  } catch (error) {
    if (!(error instanceof MiddlewareError)) throw error
    return {}
  }
}

function write(file: string, text: string): boolean {
  try {
    replaceFileSync(file, (temporary) => writeFileSync(temporary, text))
    return true
  } catch (error) {
    process.stderr.write(`${basename(file)} cannot be written: ${reasonOf(error)}\n`)
    return false
  }
}
