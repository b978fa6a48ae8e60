/** The static files of a configuration, in the folder `paths.public`. */
import { reasonOf } from '../base/reason.ts'
import { errorOfValues, type LoadedConfig } from '../config/load.ts'
import { publicFolder } from '../config/together.ts'
import { StaticFiles } from '../static/static.ts'

/**
 * Opens the folder, if the configuration names one.
 * @param report called when a file could not be sent completely
 * @throws ConfigError
 */
export function openStaticFiles(
  loaded: LoadedConfig,
  report: (message: string, error: unknown) => void,
): StaticFiles | undefined {
  const folder = publicFolder(loaded)
  if (folder === undefined) return undefined
  try {
    return new StaticFiles({
      folder,
      fallback: loaded.config['static.fallback'],
      types: loaded.config['static.types'] as Readonly<Record<string, string>>, // They have been checked.
      immutable: loaded.config['static.immutable'],
      onFailure: (file, error) => report(`${file} could not be sent completely`, error),
    })
  } catch (error) {
    throw errorOfValues(loaded, [{ key: 'paths.public', text: `paths.public: ${reasonOf(error)}` }], error)
  }
}
