/**
 * A server with several real processes, and a connection to each of them.
 */
import { Agent, request as httpRequest } from 'node:http'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { launch, type Launched } from '../support/launch.ts'
import { testKey, writeFiles, type Files } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

type Owner = Parameters<typeof launch>[0]

/** An answer of one of the processes. */
export interface Reply {
  readonly status: number
  readonly text: string
  readonly cookie: string
  readonly location: string
}

/** What to send; the method is GET, or POST with a body. */
export interface Asked {
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A connection that stays with one process. */
export class ProcessClient {
  readonly url: string
  readonly agent = new Agent({ keepAlive: true, maxSockets: 1 })

  constructor(url: string) {
    this.url = url
  }

  /** Rejects when the process has ended or was replaced meanwhile. */
  ask(path: string, { body, headers = {} }: Asked = {}): Promise<Reply> {
    const { agent } = this
    return new Promise((resolve, reject) => {
      const sent = httpRequest(`${this.url}${path}`, { agent, method: body === undefined ? 'GET' : 'POST', headers })
      sent.on('error', reject)
      sent.on('response', (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        response.on('error', reject)
        response.on('end', () => {
          const cookie = response.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
          resolve({ status: response.statusCode ?? 0, text, cookie, location: response.headers.location ?? '' })
        })
      })
      sent.end(body)
    })
  }

  /** The answer's JSON. */
  async json(path: string, asked?: Asked): Promise<unknown> {
    return JSON.parse((await this.ask(path, asked)).text)
  }

  close(): void {
    this.agent.destroy()
  }
}

export interface Several extends Launched {
  readonly folder: string
  readonly url: string
  /** A client of each process, by its process id. */
  clients(): Promise<ReadonlyMap<number, ProcessClient>>
  /** The lines of a log file. */
  lines(file?: string): string[]
}

/** The number of processes when it does not matter. */
export const count = 2

/** A module of an application that a test adds routes to. */
export const changing = { 'pid.mjs': "export default () => ({ pid: process.pid })\nexport const same = () => 'same'" }

const application: Files = {
  'routes/pid.json': [{ name: 'pid', url: '/pid', action: 'pid.mjs' }],
  'pid.mjs': 'export default () => ({ pid: process.pid })',
}

/** No watch: a reload that it begins may read in one process what a test wrote before, and in another what it wrote after. */
const settings = { app_key: testKey, 'app.env': 'dev', 'dev.watch': false, 'server.port': 0 }

/**
 * Starts a server on a free port, with the route `/pid`.
 * @param count the number of processes
 * @param config added to: dev without its watch
 */
export async function startSeveral(
  t: Owner,
  count: number,
  files: Files = {},
  config: Readonly<Record<string, unknown>> = {},
): Promise<Several> {
  const folder = temporaryFolder()
  writeFiles(folder, {
    'svc.json': { ...settings, 'server.processes': count, ...config },
    ...application,
    ...files,
  })
  const launched = launch(t, ['start'], { cwd: folder })
  const url = await launched.listening()
  const all = new Map<number, ProcessClient>()
  t.after(() => {
    for (const client of all.values()) client.close()
  })

  /** A client cannot choose the process that accepts: opens connections until each process has one. */
  async function clients(): Promise<ReadonlyMap<number, ProcessClient>> {
    for (const client of all.values()) client.close()
    all.clear()
    while (all.size < count) {
      const some = Array.from({ length: 4 * count }, () => new ProcessClient(url))
      await Promise.all(
        some.map(async (client) => {
          const { pid } = (await client.json('/pid')) as { readonly pid: number }
          if (all.has(pid)) client.close()
          else all.set(pid, client)
        }),
      )
    }
    return new Map(all)
  }

  return {
    ...launched,
    folder,
    url,
    clients,
    lines: (file = 'svc.log') => readFileSync(join(folder, '.logs', file), 'utf8').split('\n').slice(0, -1),
  }
}

/** Requests a path from each process, and returns the distinct answers: one when all agree. */
export async function agreed(clients: ReadonlyMap<number, ProcessClient>, path: string): Promise<readonly string[]> {
  const answers = await Promise.all([...clients.values()].map((client) => client.ask(path)))
  return [...new Set(answers.map(({ status, text }) => `${status} ${text}`))]
}

/** Waits until all processes together hold this many polls. */
export async function held(url: string, polls: number): Promise<void> {
  const client = new ProcessClient(url)
  await until(async () => {
    const { pool_rest } = (await client.json('/svc-status')) as { pool_rest: { longpoll: number } }
    return pool_rest.longpoll === polls
  })
  client.close()
}
