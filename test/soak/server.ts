/** The soaked server: the launcher in a process of its own, with a folder of its own, and what that process holds. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeFiles } from '../support/application.ts'
import { until } from '../support/until.ts'
import { soakFiles, type SoakConfiguration } from './application.ts'

/** What a process holds after a collection of garbage, in bytes and in numbers. */
export interface Holdings {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
  readonly arrayBuffers: number
  /** What keeps its event loop alive, by Node's names. */
  readonly handles: Readonly<Record<string, number>>
  /** Living objects by class. */
  readonly objects: Readonly<Record<string, number>>
  /** Open file descriptors by kind: `file`, `socket`, `pipe`, `anon_inode`, ... */
  readonly descriptors: Readonly<Record<string, number>>
  /** Folders of the server's in that of temporary files. */
  readonly temporaryFiles: number
}

/** What the process itself tells. */
type Probed = Omit<Holdings, 'descriptors' | 'temporaryFiles'>

export interface SoakedServer {
  readonly folder: string
  readonly port: number
  signal(name: NodeJS.Signals): void
  holdings(): Promise<Holdings>
  /** Stops it by SIGTERM. Returns how it ended, and what it wrote to standard error. */
  stop(): Promise<{ status: number | null; signal: string | null; stderr: string }>
  /** Ends it at once, if it is still there. */
  kill(): void
}

const probe = new URL('probe.js', import.meta.url).href

/**
 * Starts the launcher on the soaked application.
 * @param folder an empty folder
 * @param nodeOptions by which Node runs the launcher
 */
export async function startSoaked(
  folder: string,
  configuration: SoakConfiguration,
  nodeOptions: readonly string[],
): Promise<SoakedServer> {
  const temporary = join(folder, '.cached', 'temp')
  writeFiles(folder, soakFiles(configuration))
  mkdirSync(temporary, { recursive: true })
  const { NODE_OPTIONS: _options, NODE_V8_COVERAGE: _coverage, SVC_CONFIG: _config, ...env } = process.env
  const launcher = fileURLToPath(new URL('../../bin/svc.js', import.meta.url))
  const options = ['--expose-gc', '--disable-warning=ExperimentalWarning', '--import', probe, ...nodeOptions]
  const child = spawn(process.execPath, [...options, launcher, 'start'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const ended = once(child, 'close') as Promise<[number | null, string | null]>
  const kill = (): void => void child.kill('SIGKILL')
  const port = await listeningPort(child, join(folder, '.logs', 'svc.log'), () => stderr).catch((error: unknown) => {
    kill()
    throw error
  })
  return {
    folder,
    port,
    signal: (name) => void child.kill(name),
    holdings: () => askHoldings(child, temporary),
    stop: async () => {
      child.kill('SIGTERM')
      const [status, signal] = await ended
      return { status, signal, stderr }
    },
    kill,
  }
}

async function listeningPort(child: ChildProcess, log: string, stderr: () => string): Promise<number> {
  const port = (): string | undefined =>
    existsSync(log) ? / listening on http:\/\/[^\n]*:(\d+)\n/.exec(readFileSync(log, 'utf8'))?.[1] : undefined
  await until(() => port() !== undefined || child.exitCode !== null)
  if (child.exitCode !== null) throw new Error(`The server ended with ${child.exitCode} before it listened:\n${stderr()}`)
  return Number(port())
}

async function askHoldings(child: ChildProcess, temporary: string): Promise<Holdings> {
  let held = await askProbe(child)
  const isSettled = async (): Promise<boolean> => {
    if (!Object.keys(held.handles).some((name) => name.startsWith('FSReq'))) return true
    held = await askProbe(child)
    return false
  }
  await until(isSettled).catch(() => undefined) // A sweep of sessions may be under way; one without an end is a leak.
  const temporaryFiles = readdirSync(temporary).filter((name) => name.startsWith('svc-')).length
  return { ...held, descriptors: descriptorsOf(child.pid as number), temporaryFiles } // It runs, so it has a pid.
}

async function askProbe(child: ChildProcess): Promise<Probed> {
  const answer = once(child, 'message')
  child.send('holdings')
  const [held] = (await answer) as [Probed]
  return held
}

/** Linux alone tells; elsewhere there are none. */
function descriptorsOf(pid: number): Record<string, number> {
  const folder = `/proc/${pid}/fd`
  const kinds: Record<string, number> = {}
  if (!existsSync(folder)) return kinds
  for (const name of readdirSync(folder)) {
    const kind = kindOf(join(folder, name))
    if (kind !== undefined) kinds[kind] = (kinds[kind] ?? 0) + 1
  }
  return kinds
}

/** A descriptor may be closed while it is looked at. */
function kindOf(path: string): string | undefined {
  try {
    const target = readlinkSync(path)
    return target.startsWith('/') ? 'file' : target.slice(0, target.indexOf(':'))
  } catch {
    return undefined
  }
}
