import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startApplication, type TestApplication } from './application.ts'
import { root } from './launch.ts'

/** Starts the demo application in a folder of the test's own, so that it begins without notices. */
export function startBoard(
  t: Pick<TestContext, 'after'>,
  config: Readonly<Record<string, unknown>> = {},
): Promise<TestApplication> {
  const names = readdirSync(join(root, 'routes'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  const files = Object.fromEntries(names.map((name) => [name.slice(root.length), readFileSync(name, 'utf8')]))
  return startApplication(t, files, { 'paths.public': 'routes/public', ...config })
}
