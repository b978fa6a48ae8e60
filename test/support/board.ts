import { createHmac } from 'node:crypto'
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

/** The key of the demo's tokens. */
export const jwtKey: string = (
  JSON.parse(readFileSync(join(root, 'routes/middleware/config.json'), 'utf8')) as { setup: { jwt: { key: string } } }
).setup.jwt.key

/** A JSON Web Token, signed by HS256, with the demo's key unless another is given. */
export function tokenOf(claims: unknown, key: string = jwtKey): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'HS256' })}.${part(claims)}`
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
}
