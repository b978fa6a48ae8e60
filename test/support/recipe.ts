import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createApp, type App } from '../../lib/app.ts'
import { initApplication } from '../../lib/cli/init.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { writeFiles } from './application.ts'
import { readPage, shownFiles, type Page } from './markdown.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** A page of `docs/recipes`, by its name without `.md`. */
export function recipePage(name: string): Page {
  return readPage(`docs/recipes/${name}.md`)
}

/** Makes a new application and puts the files of a recipe over it. Returns its folder. */
export function recipeFolder(name: string, change: (text: string) => string = (text) => text): string {
  const folder = join(temporaryFolder(), 'app')
  initApplication(folder)
  const files = Object.entries(shownFiles(recipePage(name))).map(([path, text]) => [path, change(text)])
  writeFiles(folder, Object.fromEntries(files) as Record<string, string>)
  return folder
}

/** Starts the application of a recipe, on a free port; it is stopped when the test ends. The server has nothing to complain of. */
export async function startRecipe(
  t: Pick<TestContext, 'after'>,
  name: string,
  change?: (text: string) => string,
): Promise<{ readonly url: string; readonly folder: string; readonly app: App }> {
  const folder = recipeFolder(name, change)
  const app = createApp({ loaded: loadConfig(join(folder, 'svc.json'), { 'server.port': 0, 'log.console': false }) })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  const { url } = await app.start()
  assert.deepEqual(app.warnings(), [])
  return { url, folder, app }
}
