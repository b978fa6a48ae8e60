import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createApp, type App } from './app.ts'
import { initApplication } from '../../lib/commands/init.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { writeFiles } from './application.ts'
import { readPage, shownFiles, type Page } from './markdown.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { Visitor, type Fields } from './visitor.ts'

/** A running recipe. */
export interface Recipe {
  readonly url: string
  readonly folder: string
  readonly app: App
}

/** Returns a page of `docs/recipes`, by its name without `.md`. */
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

/** Starts the application of a recipe, on a free port; it is stopped when the test ends. Fails if the server has warnings. */
export function startRecipe(
  t: Pick<TestContext, 'after'>,
  name: string,
  change?: (text: string) => string,
): Promise<Recipe> {
  return startRecipeIn(t, recipeFolder(name, change))
}

/** Starts the application of a recipe in the folder that `recipeFolder` made, as `startRecipe` does. */
export async function startRecipeIn(t: Pick<TestContext, 'after'>, folder: string): Promise<Recipe> {
  const app = createApp({ loaded: loadConfig(join(folder, 'svc.json'), { 'server.port': 0, 'log.console': false }) })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  const { url } = await app.start()
  assert.deepEqual(app.warnings(), [])
  return { url, folder, app }
}

/** The fields that a browser sends with a form of a page. */
export function sameOrigin(url: string, page: string): Fields {
  return { 'sec-fetch-site': 'same-origin', referer: url + page }
}

/** A visitor who has signed in at `/login` of a recipe, as ann or bob. */
export async function signedInto(url: string, name: string): Promise<Visitor> {
  const visitor = new Visitor(url)
  const { status } = await visitor.submit('/login', '/login', { name, password: 'correct-horse' })
  assert.equal(status, 303)
  return visitor
}
