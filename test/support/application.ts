import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { createApp, type App, type AppOptions } from './app.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** Files by path relative to the folder; values other than strings are written as JSON. */
export type Files = Readonly<Record<string, unknown>>

/** A running application in its own folder. */
export interface TestApplication {
  readonly app: App
  readonly folder: string
  readonly url: string
  readonly port: number
  /** Writes files below the folder. */
  write(files: Files): void
  /** The lines of a log file so far; flushes the logs first. */
  lines(file?: string): string[]
}

/** An `app_key` without warnings. */
export const testKey = 'test key of thirty-two characters'

/** Writes files below a folder, with the folders they need. */
export function writeFiles(folder: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    const mode = path.endsWith('svc.json') ? 0o600 : 0o666 // It may hold secrets.
    const isRaw = typeof content === 'string' || Buffer.isBuffer(content)
    writeFileSync(join(folder, path), isRaw ? content : JSON.stringify(content), { mode })
  }
}

/**
 * Starts an application from files on a free port; it is stopped when the test ends.
 * @param config keys of `svc.json`, added to: port 0, no console, prod, level debug
 * @param more other options of the app
 */
export async function startApplication(
  t: Pick<TestContext, 'after'>,
  files: Files,
  config: Readonly<Record<string, unknown>> = {},
  more: Partial<AppOptions> = {},
): Promise<TestApplication> {
  const folder = more.folder ?? temporaryFolder()
  writeFiles(folder, { 'routes/.keep': '', ...files })
  const app = createApp({
    folder,
    config: { 'server.port': 0, 'log.console': false, 'log.level': 'debug', app_key: testKey, ...config },
    ...more,
  })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  const { url, port } = await app.start()
  return {
    app,
    folder,
    url,
    port,
    write: (more) => writeFiles(folder, more),
    lines: (file = 'svc.log') => {
      app.flushLogs()
      return readFileSync(join(folder, '.logs', file), 'utf8').split('\n').slice(0, -1)
    },
  }
}
