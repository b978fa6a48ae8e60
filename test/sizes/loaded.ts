/** Which files of `lib/` a plain start has loaded when it has answered a page, a 404, a file and its status. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { applicationFolder } from '../support/application-folder.ts'
import { launch, optionsOfSources } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** What the coverage of V8 says of a process, as far as it is read here. */
interface Coverage {
  readonly result: readonly { readonly url: string }[]
}

/**
 * Starts the launcher of a checkout from its sources, asks the four, stops it, and reads what V8 has seen run.
 * @param checkout absolute
 * @returns paths relative to its `lib/`, sorted
 */
export async function loadedFiles(
  t: { after(ending: () => unknown): void },
  checkout: string,
  environment: 'dev' | 'prod' = 'dev',
): Promise<string[]> {
  const folder = temporaryFolder()
  const files = { 'public/file.txt': 'a file' }
  const cwd = applicationFolder(files, { 'app.env': environment, 'paths.public': 'public' })
  const env = { NODE_V8_COVERAGE: folder }
  const launched = launch(t, [], { cwd, env, nodeOptions: optionsOfSources(), launcher: join(checkout, 'bin', 'svc.js') })
  const url = await launched.listening()
  const statuses = []
  for (const path of ['/', '/not-there', '/file.txt', '/svc-status']) statuses.push((await request(url + path)).status)
  assert.deepEqual(statuses, [200, 404, 200, environment === 'dev' ? 200 : 302])
  launched.child.kill('SIGTERM')
  assert.equal(await launched.ended, 0)
  const lib = join(checkout, 'lib/')
  return scriptsIn(folder).filter((path) => path.startsWith(lib)).map((path) => path.slice(lib.length))
}

/** The files whose code has run, by what V8 wrote into a folder (`NODE_V8_COVERAGE`); absolute, sorted. */
export function scriptsIn(folder: string): string[] {
  const seen = new Set<string>()
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Coverage
    for (const { url } of result) if (url.startsWith('file:')) seen.add(fileURLToPath(url.replace(/\?.*$/, '')))
  }
  return [...seen].sort()
}
