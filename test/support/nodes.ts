/** Servers that share an engine, as a client of their panels sees them. */
import { request, type Answer } from './request.ts'

/** A server with its address. */
export interface Node {
  readonly url: string
}

/** An application with one route, `/file`, and an action for routes that are added. */
export const nodeFiles = {
  'routes/file.json': [{ name: 'file', url: '/file', action: 'a.mjs@same' }],
  'a.mjs': "export const same = () => 'same'",
}

/** Asks a program's way: errors are JSON. */
export function ask(url: string, path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return request(url + path, { headers: { accept: 'application/json', ...headers } })
}

/** Posts JSON to the panel. */
export function post(url: string, path: string, value: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return request(url + path, { body: JSON.stringify(value), headers: { accept: 'application/json', ...headers } })
}
