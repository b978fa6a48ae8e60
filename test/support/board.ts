import { createHmac } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startApplication, writeFiles, type Files, type TestApplication } from './application.ts'
import { launch, root } from './launch.ts'
import { temporaryFolder } from './temporary-folder.ts'

const paths = { 'paths.public': 'routes/public', 'paths.jobs': 'routes/jobs' }

/** Starts the demo application in a folder of the test's own, so that it begins without notices. */
export function startBoard(
  t: Pick<TestContext, 'after'>,
  config: Readonly<Record<string, unknown>> = {},
): Promise<TestApplication> {
  return startApplication(t, boardFiles(), { ...paths, ...config })
}

/** The demo application in its own process, which can be stopped and restarted on the same port. */
export interface LaunchedBoard {
  readonly url: string
  readonly folder: string
  /** Stops it as `kill` does. Resolves when the process has ended. */
  stop(): Promise<void>
  /** Starts it again. Resolves when it listens. */
  start(): Promise<void>
}

/** Launches the demo application in a folder of the test's own. */
export async function launchBoard(
  t: Pick<TestContext, 'after'>,
  config: Readonly<Record<string, unknown>> = {},
): Promise<LaunchedBoard> {
  const folder = temporaryFolder()
  const begin = (port: number) => launch(t, ['--config', 'svc.json', '--port', String(port)], { cwd: folder })
  writeFiles(folder, { ...boardFiles(), 'svc.json': { app_key: 'test', ...paths, ...config }, 'package.json': { type: 'module' } })
  let launched = begin(0)
  const url = await launched.listening()
  return {
    url,
    folder,
    stop: async () => {
      launched.child.kill()
      const ending = await launched.ended
      if (ending !== 0) throw new Error(`The board ended with ${ending}:\n${launched.stdout()}${launched.stderr()}`)
    },
    start: async () => {
      launched = begin(Number(new URL(url).port))
      await launched.listening()
    },
  }
}

function boardFiles(): Files {
  const names = readdirSync(join(root, 'routes'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(names.map((name) => [name.slice(root.length), readFileSync(name, 'utf8')]))
}

/** The key of the demo's tokens. */
export const jwtKey: string = (
  JSON.parse(readFileSync(join(root, 'routes/middleware/config.json'), 'utf8')) as { setup: { jwt: { key: string } } }
).setup.jwt.key

/** A JSON Web Token, signed with HS256, by default with the demo's key. */
export function tokenOf(claims: unknown, key: string = jwtKey): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'HS256' })}.${part(claims)}`
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
}
