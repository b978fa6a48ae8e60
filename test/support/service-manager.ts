import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { linkSync, renameSync } from 'node:fs'
import { createServer, type ListenOptions, type Server } from 'node:net'
import type { TestContext } from 'node:test'
import { optionsOfTarget, root } from './launch.ts'
import { until } from './until.ts'

/** Keeps a listening socket and starts the server on it, as systemd does: by LISTEN_FDS, again and again. */
export interface ServiceManager {
  readonly port: number
  /** Starts the server; resolves with its process id when it listens. */
  start(): Promise<number>
  /** Sends a signal, SIGTERM unless given, and starts the server again as soon as it has ended: see `start`. */
  restart(signal?: NodeJS.Signals): Promise<number>
  /** Sends a signal to the server. */
  kill(signal: NodeJS.Signals): void
  /** Resolves with the exit status when the server has ended. */
  ended(): Promise<number>
  /** The output of all servers so far. */
  output(): string
}

export interface ServiceManagerOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  /** Where to listen; by default a free port of 127.0.0.1. */
  readonly listen?: ListenOptions
}

/**
 * A shell holds the socket, since Node would accept connections on one that it holds itself. It starts the server once
 * for each line that it reads, with the process id of that server in LISTEN_PID, and prints id and exit status.
 */
const script = `while read -r _; do
  (exec sh -c 'echo "pid $$"; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@" </dev/null' sh "$@")
  echo "status $?"
done`

/** Makes the socket and what keeps it. Both go when the test ends, and the server with them. */
export async function serviceManager(t: Pick<TestContext, 'after'>, options: ServiceManagerOptions): Promise<ServiceManager> {
  const { listen = { host: '127.0.0.1', port: 0 } } = options
  const socket = createServer().listen(listen)
  await once(socket, 'listening')
  const address = socket.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  const { NODE_OPTIONS: _options, SVC_CONFIG: _config, ...env } = process.env
  const args = ['-c', script, 'sh', process.execPath, ...optionsOfTarget(), `${root}bin/svc.js`]
  const shell = spawn('sh', args, {
    cwd: options.cwd,
    env: { ...env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe', handleOf(socket)],
  })
  await once(shell, 'spawn')
  closeHere(socket, listen.path)
  return follow(t, shell, port)
}

function follow(t: Pick<TestContext, 'after'>, shell: ChildProcess, port: number): ServiceManager {
  let output = ''
  for (const stream of [shell.stdout, shell.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  const closed = once(shell, 'close')
  const numbers = (pattern: RegExp): number[] => [...output.matchAll(pattern)].map(([, digits]) => Number(digits))
  const pids = (): number[] => numbers(/^pid (\d+)$/gm)
  const statuses = (): number[] => numbers(/^status (\d+)$/gm)
  const runs = (): boolean => pids().length > statuses().length
  const kill = (signal: NodeJS.Signals): void => {
    if (runs()) process.kill(pids().at(-1) as number, signal) // One that runs has an id.
  }
  t.after(async () => {
    kill('SIGKILL')
    shell.stdin?.end()
    await closed
  })
  let started = 0
  const listening = async (): Promise<number> => {
    await until(() => numbers(/listening on .*?(\d*)\n/g).length >= started || (pids().length === started && !runs()))
    const pid = pids().at(-1)
    if (pid === undefined || !runs()) throw new Error(`The server ended before it listened:\n${output}`)
    return pid
  }
  const order = (): void => {
    started += 1
    shell.stdin?.write('\n')
  }
  return {
    port,
    start: () => {
      order()
      return listening()
    },
    restart: (signal = 'SIGTERM') => {
      order()
      kill(signal)
      return listening()
    },
    kill,
    ended: async () => {
      await until(() => statuses().length === started)
      return statuses().at(-1) ?? -1
    },
    output: () => output,
  }
}

/** Node removes the file of a Unix socket that it closes, so it gets a second name meanwhile. */
function closeHere(socket: Server, path: string | undefined): void {
  if (path !== undefined) linkSync(path, `${path}.kept`)
  socket.close()
  if (path !== undefined) renameSync(`${path}.kept`, path)
}

/** Node passes a descriptor on by its number, which is in this field; there is no documented way to it. */
function handleOf(server: Server): number {
  return (server as Server & { readonly _handle: { readonly fd: number } })._handle.fd
}
