/**
 * The static files of an app: the folder `paths.public`, or none.
 */
import { ConfigError } from './config/load.ts'
import { createStaticFiles, type StaticFiles } from './http/static.ts'

/**
 * @param path `paths.public`; '' for none
 * @param inFolder makes a path absolute
 * @param report told of a file that could not be sent to its end
 * @throws ConfigError when it is no folder that can be served
 */
export function publicFiles(
  path: string,
  inFolder: (path: string) => string,
  report: (message: string, error: unknown) => void,
): StaticFiles | undefined {
  if (path === '') return undefined
  try {
    return createStaticFiles({
      folder: inFolder(path),
      onFailure: (file, error) => report(`${file} could not be sent to its end`, error),
    })
  } catch (error) {
    throw new ConfigError('the configuration', [`paths.public: ${(error as Error).message}`], { cause: error })
  }
}
