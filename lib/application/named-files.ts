/**
 * The files that a configuration names besides the application: the folder of static files, `paths.public`, and the
 * certificate.
 */
import { reasonOf } from '../base/reason.ts'
import { ConfigError, errorOfValues, type LoadedConfig } from '../config/load.ts'
import { problemsTogether, publicFolder } from '../config/together.ts'
import { createStaticFiles, type StaticFiles } from '../static/static.ts'
import { readCertificates, type Certificates } from '../tls/certificates.ts'

type Report = (message: string, error: unknown) => void

/**
 * Opens the files that the configuration names, and checks that its values go together.
 * @param report called when a static file could not be sent to its end
 * @returns undefined for each of both that the configuration does not name
 * @throws ConfigError with all problems
 */
export function openNamedFiles(
  loaded: LoadedConfig,
  report: Report,
): { readonly certificates: Certificates | undefined; readonly staticFiles: StaticFiles | undefined } {
  const errors: ConfigError[] = []
  const attempt = <Opened>(open: () => Opened): Opened | undefined => {
    try {
      return open()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      errors.push(error)
      return undefined
    }
  }
  const together = problemsTogether(loaded)
  if (together.length > 0) errors.push(errorOfValues(loaded, together))
  const certificates = attempt(() => readCertificates(loaded))
  const staticFiles = attempt(() => publicFiles(loaded, report))
  const [first, ...others] = errors
  if (first !== undefined) throw first.also(others.flatMap(({ problems }) => problems))
  return { certificates, staticFiles }
}

/** The problems of these files, which are not kept open. */
export function problemsOfNamedFiles(loaded: LoadedConfig): readonly string[] {
  try {
    openNamedFiles(loaded, () => {})
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems
  }
}

function publicFiles(loaded: LoadedConfig, report: Report): StaticFiles | undefined {
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
