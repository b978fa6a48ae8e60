/** Servers that share an engine, as a client of their panels sees them. */
import type { ListedNode } from '../../lib/nodes/node-list.ts'
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

/** Sends a request as a program does: errors are JSON. */
export function ask(url: string, path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return request(url + path, { headers: { accept: 'application/json', ...headers } })
}

/** Posts JSON to the panel. */
export function post(url: string, path: string, value: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return request(url + path, { body: JSON.stringify(value), headers: { accept: 'application/json', ...headers } })
}

/** The fields of a node in `/svc-status`. */
export interface StatusNode {
  readonly name: string
  readonly self: boolean
  readonly state: string
  readonly problem: string
  readonly change: number
  readonly pid: number
  readonly processes: number
}

/** The nodes as listed by one of them. */
export async function nodesOf(url: string): Promise<readonly StatusNode[]> {
  const { nodes } = (await ask(url, '/svc-status')).json() as { nodes: readonly StatusNode[] }
  return nodes
}

/** What the nodes answer; each is asked several times, since one may have several processes. One entry where all agree. */
export async function answersOf(nodes: readonly Node[], path: string): Promise<readonly string[]> {
  const asked = nodes.flatMap((node) => [node, node, node])
  const answers = await Promise.all(asked.map(({ url }) => ask(url, path)))
  return [...new Set(answers.map(({ status, text }) => (status === 200 ? text : String(status))))]
}

/** Whether a node takes requests. */
export async function isReady({ url }: Node): Promise<boolean> {
  return (await ask(url, '/svc-ready')).status === 200
}

/** A route of the action of `nodeFiles`, at `/NAME`. */
export function route(name: string, more: object = {}): object {
  return { name, url: `/${name}`, action: 'a.mjs@same', ...more }
}

/** The application's routes of a node, in order. */
export async function tableOf({ url }: Node): Promise<readonly string[]> {
  const records = (await ask(url, '/svc-routes/list?format=json')).json() as readonly { name: string; url: string }[]
  return records.map((record) => `${record.name} ${record.url}`)
}

/** A node as known by one of them. */
export const listedNode: ListedNode = {
  name: 'a:1',
  self: true,
  state: 'ready',
  problem: '',
  seq: 1,
  seen_s: 0,
  version: '0.1.0',
  pid: 1,
  processes: 1,
  uptime_s: 1,
  requests: 1,
  errors: 0,
  per_second: 1,
  active: 1,
  rss_mb: 1,
  loop_p99_ms: 1,
}
