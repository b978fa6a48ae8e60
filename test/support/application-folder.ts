import { testKey, writeFiles, type Files } from './application.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** A folder with an application: one route `/`, a free port, and what a test adds. Returns its absolute path. */
export function applicationFolder(
  files: Files = {},
  config: Readonly<Record<string, unknown>> = {},
): string {
  const folder = temporaryFolder()
  writeFiles(folder, {
    'svc.json': { app_key: testKey, 'server.port': 0, ...config },
    'routes/home.json': [{ name: 'home', url: '/', action: 'home.mjs' }],
    'home.mjs': "export default () => 'home'",
    ...files,
  })
  return folder
}
