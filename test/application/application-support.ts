import type { TestContext } from 'node:test'
import { ApplicationParts } from '../../lib/composition/application-parts.ts'
import { parseConfig } from '../../lib/config/load.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { writeFiles, type Files } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Creates an application that is not started, without a server. */
export function makeApplication(t: Pick<TestContext, 'after'>, files: Files) {
  const folder = temporaryFolder()
  writeFiles(folder, files)
  const { application, registry } = new ApplicationParts(parseConfig({}, folder), 'a key', () => silentLogger)
  t.after(() => application.stop())
  return {
    application,
    folder,
    names: () => registry.list().map(({ record }) => record.name),
    write: (more: Files) => writeFiles(folder, more),
  }
}
