/**
 * What `svc.json` sets for an application: `setup`, merged over that of the middleware's `config.json`, and `settings`,
 * checked by the schemas that middleware modules export.
 */
import { basename, resolve } from 'node:path'
import type { LoadedConfig } from '../config/load.ts'
import { frozen, keyOf, mergeObjects, replacedKeys, type AnyObject } from '../config/objects.ts'
import { MiddlewareError, readMiddlewareConfig, unknownGroups } from '../modules/middleware-config.ts'
import type { MiddlewareConfig } from '../modules/middleware-config.ts'
import type { CheckedSettings, FoundModule } from '../modules/middleware-host.ts'
import { Schema } from '../validation/fields.ts'
import { createMessageGroup } from '../validation/messages.ts'

/** The name of a setting in a message. */
const settingName = /\bsetup\.[\w.-]*\w/

/**
 * Reads `config.json`, and merges `setup` of `svc.json` and `svc.local.json` over its own.
 * @param groups the known groups of `setup`
 * @returns also a line for each setting of `config.json` that is overridden
 * @throws MiddlewareError as `readMiddlewareConfig` does
 */
export function middlewareConfigOf(
  loaded: LoadedConfig,
  groups: readonly string[],
): MiddlewareConfig & { readonly overridden: readonly string[] } {
  const { config: { setup, 'paths.middleware': middlewareFolder }, folder, sources } = loaded
  const own = readMiddlewareConfig(resolve(folder, middlewareFolder), groups)
  const overridden = replacedKeys('setup', own.setup, setup)
  return {
    ...own,
    setup: mergeObjects(own.setup, setup),
    warnings: [...new Set([...own.warnings, ...unknownGroups(setup, groups)])],
    locate: (message) => {
      const source = sourceOf(sources, settingName.exec(message)?.[0])
      return source === undefined ? own.locate(message) : inFile(loaded, message, source)
    },
    overridden: overridden.map((key) => `${sourceOf(sources, key)} overrides ${key} of ${own.file}`),
  }
}

/**
 * Creates a function that checks the settings of the application. Each schema reads all settings; the values that it
 * declares, with its defaults, replace the given ones. The others stay.
 */
export function createSettingsReader(loaded: LoadedConfig): (modules: readonly FoundModule[]) => CheckedSettings {
  const given: AnyObject = frozen(loaded.settings.value)
  const { textOf } = createMessageGroup()

  return (modules) => {
    // Settings that could not be read prevent the start; the schemas would report them again.
    if (loaded.settings.problems.length > 0) return { settings: given, errors: [] }
    const errors: MiddlewareError[] = []
    const wrong = new Set<string>()
    let settings = given
    for (const { file, namespace: { settings: schema } } of modules) {
      if (schema === undefined) continue
      const read = schema instanceof Schema ? schema.read(given) : undefined
      if (read === undefined) {
        const remedy = typeof schema === 'function' ? ': give a middleware of that name another one' : ''
        const problem = `its export settings must be a schema, fields({...}): it is of type ${typeof schema}${remedy}`
        errors.push(new MiddlewareError(file, `Cannot load middleware ${file}: ${problem}`))
      } else if ('value' in read) {
        settings = mergeObjects(settings, read.value as AnyObject) // A schema reads an object as one.
      } else {
        for (const problem of read.problems) wrong.add(located(problem.path, textOf(problem)))
      }
    }
    const file = fileOf(loaded)
    if (wrong.size > 0) errors.push(new MiddlewareError(file, `Cannot load ${file}: ${[...wrong].join('; ')}`))
    return { settings, errors }
  }

  function located(path: string, problem: string): string {
    const key = keyOf('settings', path.split('.'))
    const source = sourceOf(loaded.sources, key)
    return source === undefined ? `${key}: ${problem}` : inFile(loaded, `${key}: ${problem}`, source).message
  }
}

/** Returns the source of a setting; of an object or a list, that of the first value in it. */
function sourceOf(sources: LoadedConfig['sources'], key = ''): string | undefined {
  return sources[key] ?? Object.entries(sources).find(([other]) => other.startsWith(`${key}.`))?.[1]
}

/** Adds the place in the configuration to a message, without the name of the main file. */
function inFile(loaded: LoadedConfig, message: string, source: string): ReturnType<MiddlewareConfig['locate']> {
  const file = fileOf(loaded)
  return { file, message: `${message} (${source.replace(`${basename(file)}, `, '')})` }
}

function fileOf({ file, localFile }: LoadedConfig): string {
  return file ?? localFile ?? 'the configuration'
}
