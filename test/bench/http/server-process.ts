/**
 * The servers as processes: each on the servers' core, with the files of one workload in a folder of its own.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { writeApplication, writeFixture } from './application.ts'
import { endWithThis } from './children.ts'
import { cpuMs, residentMiB } from './process-figures.ts'
import type { Workload } from './workloads.ts'

/** A server that runs. */
export interface ServerProcess {
  readonly name: string
  readonly pid: number
  /** Without a path. */
  readonly origin: string
  /** The processor time that it has taken so far. */
  cpuMs(): number
  /** Its resident memory. */
  residentMiB(): number
  /** Ends it at once. */
  stop(): Promise<void>
}

/** How a server is started. */
export interface StartOptions {
  /** The program of the Node to start it with. */
  readonly node: string
  readonly workload: Workload
  /** One that is not there yet. */
  readonly folder: string
  /** The folder of the other checkout; needed for its server alone. */
  readonly against?: string | undefined
  /** A program, with its arguments, that runs Node; none unless given. */
  readonly through?: readonly string[]
}

/** The cores that are used. Whatever else runs on them is measured, too. */
export const cores = { server: 0, load: 1 } as const

/** The server of another checkout. */
export const otherCheckout = 'svc, other'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const listening = /(?:^port |listening on https?:\/\/127\.0\.0\.1:)(\d+)/

/**
 * Starts a server and resolves when it listens.
 * @throws Error when it ends before
 */
export function startServer(
  name: string,
  { node, workload, folder, against = '', through = [] }: StartOptions,
): Promise<ServerProcess> {
  const program = [...through, node, ...programOf(name, workload, folder, against)]
  return startProgram(name, program, workload.tls ? 'https' : 'http')
}

/** Starts svc with a configuration of the caller's own. */
export function startSvc(node: string, configFile: string): Promise<ServerProcess> {
  return startProgram('svc', [node, join(root, 'bin/svc.js'), '--config', configFile], 'http')
}

async function startProgram(name: string, program: readonly string[], scheme: string): Promise<ServerProcess> {
  const env = { ...process.env, NODE_ENV: 'production' }
  const command = ['-c', String(cores.server), ...program]
  const child = spawn('taskset', command, { stdio: ['ignore', 'pipe', 'inherit'], env })
  endWithThis(child)
  const ended = once(child, 'exit')
  const port = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = listening.exec(line)?.[1]
      if (found !== undefined) resolve(found)
    })
    const failed = (): void => reject(new Error(`Cannot measure ${name}: it ended before it listened`))
    void ended.then(failed, reject)
  })
  const pid = child.pid as number // It runs.
  return {
    name,
    pid,
    origin: `${scheme}://127.0.0.1:${port}`,
    cpuMs: () => cpuMs(pid),
    residentMiB: () => residentMiB(pid),
    async stop() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** svc is started by its launcher, as it ships. */
function programOf(name: string, workload: Workload, folder: string, against: string): string[] {
  if (name === 'svc' || name.startsWith('svc,')) {
    const isOther = name === otherCheckout
    writeApplication(folder, workload, isOther ? 'svc' : name)
    return [join(isOther ? against : root, 'bin/svc.js'), '--config', join(folder, 'svc.json')]
  }
  writeFixture(folder, workload)
  return [join(root, 'test/bench/http/servers', fileOf(name)), folder, name]
}

function fileOf(name: string): string {
  if (name === 'sirv' || name === 'serve-static') return 'files.js'
  return `${name.split(',', 1)[0]}.js`
}
