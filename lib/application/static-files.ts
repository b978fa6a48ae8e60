/** The static files of a configuration: those of the folder `paths.public`. */
import { reasonOf } from '../base/reason.ts'
import { errorOfValues, type LoadedConfig } from '../config/load.ts'
import { publicFolder } from '../config/together.ts'
import { createStaticFiles, type StaticFiles } from '../static/static.ts'

/**
 * Opens the folder; undefined when the configuration names none.
 * @param report called when a file could not be sent to its end
 * @throws ConfigError
 */
export function openStaticFiles(
  loaded: LoadedConfig,
  report: (message: string, error: unknown) => void,
): StaticFiles | undefined {
  const folder = publicFolder(loaded)
  if (folder === undefined) return undefined
  try {
    return createStaticFiles({
      folder,
      onFailure: (file, error) => report(`${file} could not be sent to its end`, error),
    })
  } catch (error) {
    throw errorOfValues(loaded, [{ key: 'paths.public', text: `paths.public: ${reasonOf(error)}` }], error)
  }
}
