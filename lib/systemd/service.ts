/**
 * Takes what a service manager passes to this process: secrets, a listening socket, and the address for notifications
 * about the state of the server (sd_notify(3)). Secrets may also come from variables that the operator sets.
 *
 * All of it except the folder of the credentials is removed from the environment: a child process of the application
 * must not inherit a secret, and its file descriptors with those numbers would be different ones.
 */
import type { ExecFileException } from 'node:child_process'
import { fstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SerialQueue } from '../base/serial-queue.ts'
import { ConfigError } from '../config/load.ts'
import { hasRoom } from '../config/load-room.ts'
import type { Config } from '../config/table.ts'
import { mayStartPrograms } from '../files/rights.ts'

/** The secrets passed to this process. */
export interface PassedSecrets {
  /** The secrets that replace a value of the configuration, by key. */
  readonly overrides?: Partial<Config>
  /** The password of the shared engine. */
  readonly sharedPassword?: string
  /** The source of each, by the configuration key whose value, or part of it, it replaces. */
  readonly from?: Readonly<Record<string, string | undefined>>
}

/** Everything passed to this process. */
export interface PassedToProcess extends PassedSecrets {
  /** The file descriptor of a listening socket. */
  readonly listenFd?: number
  /** Log lines: the sources of secrets, and why a socket is not used. */
  readonly notes: readonly Note[]
  /** Undefined if no service manager expects notifications. */
  readonly notifier?: ReturnType<typeof createNotifier>
  /** Adapts the configuration to a process started by a service manager. */
  readonly adapt?: (config: Config) => Config
}

/** A line for the log of a module. */
interface Note {
  readonly module: string
  readonly level: 'info' | 'warn'
  readonly message: string
}

/** A secret, and a phrase that names its source. */
interface PassedSecret {
  readonly secret: string
  readonly from: string
}

/** A passed listening socket. */
interface PassedSocket {
  /** Its file descriptor; undefined if none was passed to this process. */
  readonly fd: number | undefined
  /** A warning for the operator. */
  readonly warning?: string
}

/** The names of the credentials, each with its equivalent variable and the key that it replaces. */
const secrets = {
  app_key: { variable: 'SVC_APP_KEY', key: 'app_key' },
  app_key_previous: { variable: 'SVC_APP_KEY_PREVIOUS', key: 'app_key_previous' },
  shared_password: { variable: 'SVC_SHARED_PASSWORD', key: 'shared.url' },
  metrics_token: { variable: 'SVC_METRICS_TOKEN', key: 'admin.metrics_token' },
} as const
type SecretName = keyof typeof secrets
const socketVariables = ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']

/** The first passed descriptor: SD_LISTEN_FDS_START of sd_listen_fds(3). */
const firstFd = 3
const socketSource = 'the socket of the service manager'

/** A child is killed after this time: the service manager is not reading. */
const timeoutMs = 10_000

/**
 * Takes everything.
 * @param pid this process
 * @param warn called when the service manager could not be notified
 * @throws ConfigError when something passed cannot be used
 */
export function takePassed(env: NodeJS.ProcessEnv, pid: number, warn: (message: string) => void): PassedToProcess {
  const isManaged = isServiceManaged(env)
  const passed = takeSecrets(env)
  const notes = Object.entries(passed.from).map(([key, from]): Note => {
    const what = key === 'shared.url' ? 'the password of shared.url' : key
    return { module: 'config', level: 'info', message: `${what} comes from ${from}` }
  })
  const { fd, warning } = takeListenFds(env, pid)
  if (warning !== undefined) notes.push({ module: 'server', level: 'warn', message: warning })
  return {
    ...passed,
    ...(fd !== undefined && { listenFd: fd }),
    notes,
    notifier: createNotifier(env, pid, warn),
    ...(isManaged && { adapt: configOfService }),
  }
}

/** Returns whether a service manager has started this process, by the variables that it sets (systemd.exec(5)). */
export function isServiceManaged(env: NodeJS.ProcessEnv): boolean {
  return ['INVOCATION_ID', 'NOTIFY_SOCKET', 'LISTEN_FDS'].some((name) => env[name] !== undefined)
}

/** What `server.hang_trace_s` is for a service, in seconds. */
const traceOfService = 5

/**
 * Returns the configuration for a service, unless the file configures it: the first setup requires its token, and a
 * blocked event loop is traced.
 */
export function configOfService(config: Config): Config {
  const { 'admin.setup_token': setupToken, 'server.hang_trace_s': hangTrace } = config
  return {
    ...config,
    'admin.setup_token': setupToken === 'auto' ? 'on' : setupToken,
    'server.hang_trace_s': hangTrace === 'auto' && hasRoom('diagnose') ? traceOfService : hangTrace,
  }
}

/**
 * Takes all secrets, as `takeSecret` does.
 * @throws ConfigError
 */
export function takeSecrets(env: NodeJS.ProcessEnv): PassedSecrets & Required<Pick<PassedSecrets, 'from'>> {
  const taken = (Object.keys(secrets) as SecretName[]).map((name) => [name, takeSecret(env, name)] as const)
  const { app_key: key, app_key_previous: previous, shared_password: password, metrics_token: token } =
    Object.fromEntries(taken) as Record<SecretName, PassedSecret | undefined> // It has every name.
  return {
    overrides: {
      ...(key !== undefined && { app_key: key.secret }),
      ...(previous !== undefined && { app_key_previous: linesOf(previous.secret) }),
      ...(token !== undefined && { 'admin.metrics_token': token.secret }),
    },
    ...(password !== undefined && { sharedPassword: password.secret }),
    from: Object.fromEntries(taken.flatMap(([name, secret]) => (secret ? [[secrets[name].key, secret.from]] : []))),
  }
}

/**
 * Takes a secret: a variable such as `SVC_APP_KEY`, else a credential of the service manager
 * (`LoadCredential=app_key:...`, systemd.exec(5)) without its trailing line end. Both replace the value in the
 * configuration file; the first setup then leaves an `app_key` in the file unchanged.
 * @param name `app_key`: the key that signs; `app_key_previous`: keys that verify, one a line, or none;
 *   `shared_password`: the password of the shared engine; `metrics_token`: the token for programs that read the metrics
 * @returns undefined when neither exists
 * @throws ConfigError when the secret is empty or cannot be read: a random key in its place would go unnoticed
 */
export function takeSecret(env: NodeJS.ProcessEnv, name: SecretName): PassedSecret | undefined {
  const { variable } = secrets[name]
  const { CREDENTIALS_DIRECTORY: folder = '', [variable]: value } = env
  delete env[variable]
  if (value !== undefined) return checked(name, value, `the environment variable ${variable}`)
  if (folder === '') return undefined
  const file = join(folder, name)
  const credential = readCredential(name, file)
  if (credential === undefined) return undefined
  return checked(name, credential.replace(/\r?\n$/, ''), `the credential ${file}`)
}

/**
 * Takes the listening socket of socket activation, by the rules of sd_listen_fds(3). The kernel keeps its queue while
 * the server restarts, so that no client is refused. Sockets for another process are ignored, with a warning.
 * @throws ConfigError when there is more than one socket, or the descriptor is not a socket
 */
export function takeListenFds(env: NodeJS.ProcessEnv, pid: number): PassedSocket {
  const { LISTEN_PID: forPid, LISTEN_FDS: count, LISTEN_FDNAMES: names } = env
  for (const name of socketVariables) delete env[name]
  if (count === undefined || count === '0') return { fd: undefined }
  if (forPid !== String(pid)) {
    const warning = `LISTEN_FDS is not used: LISTEN_PID is ${forPid ?? 'missing'}, and this is process ${pid}`
    return { fd: undefined, warning }
  }
  if (count !== '1') {
    const which = names === undefined ? '' : ` (${names})`
    const problem = `LISTEN_FDS must be 1: it is ${count}${which}; let svc.socket have one ListenStream=`
    throw new ConfigError(socketSource, [problem])
  }
  if (!isSocket(firstFd)) {
    throw new ConfigError(socketSource, [`file descriptor ${firstFd} is not a socket, though LISTEN_FDS is 1`])
  }
  return { fd: firstFd }
}

/**
 * Creates the notifier of this process; undefined if no service manager expects notifications. Its methods neither
 * wait nor fail.
 *
 * Node has no datagram sockets in the file system, so each message is sent by a short-lived child, `systemd-notify`,
 * and the unit needs `NotifyAccess=all`. The children run one after the other, which keeps the messages in order.
 * @param env `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` are removed from it, so no child process inherits them
 * @param pid the main process
 * @param warn called when a message could not be sent
 */
export function createNotifier(env: NodeJS.ProcessEnv, pid: number, warn: (message: string) => void) {
  const { NOTIFY_SOCKET: socket, PATH: path } = env
  const watchdogMs = watchdogIntervalMs(env, pid)
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name]
  if (socket === undefined || socket === '') return undefined
  const childEnv = { NOTIFY_SOCKET: socket, ...(path !== undefined && { PATH: path }) }
  const { execFile } = process.getBuiltinModule('node:child_process') // loaded only if needed
  const messages = new SerialQueue()
  let serving = false
  let feeding = false

  /** Feeds the watchdog, unless the previous message is still being sent. */
  function feed(): void {
    if (feeding) return
    feeding = true
    send('WATCHDOG=1')
    void messages.ended().then(() => (feeding = false))
  }

  function send(...assignments: readonly string[]): void {
    if (serving && !mayStartPrograms()) return // Given up after the first message.
    // Starting a child may throw, such as ENOMEM.
    messages.run(() => run(assignments)).catch((error: Error) => {
      warn(`the service manager was not notified of ${assignments[0]}: ${error.message}`)
    })
  }

  function run(assignments: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (error: ExecFileException | null, _out: string, complaint: string): void => {
        if (error === null) resolve()
        else reject(complaint.trim() === '' ? error : new Error(complaint.trim()))
      }
      execFile('systemd-notify', [`--pid=${pid}`, ...assignments], { env: childEnv, timeout: timeoutMs }, done)
    })
  }

  return {
    /** Whether it starts children for as long as the server runs. */
    feedsWatchdog: watchdogMs !== undefined,
    /** Reports that the server accepts requests, and starts to feed the watchdog. `systemctl status` shows `status`. */
    ready: (status: string): void => {
      send('READY=1', `STATUS=${status}`)
      serving = true
      if (watchdogMs !== undefined) setInterval(feed, watchdogMs).unref()
    },
    /** Reports the start of a reload. Sends nothing before `ready` and during a stop. */
    reloading: (): void => {
      // Both clocks are CLOCK_MONOTONIC; the service manager compares.
      const now = process.hrtime.bigint() / 1000n
      if (serving) send('RELOADING=1', `MONOTONIC_USEC=${now}`, 'STATUS=reloading')
    },
    /** Reports the end of a reload. */
    reloaded: (status: string): void => {
      if (serving) send('READY=1', `STATUS=${status}`)
    },
    /** Reports the start of the stop. */
    stopping: (): void => {
      send('STOPPING=1', 'STATUS=stopping')
      serving = false
    },
    /** Resolves when all messages so far have been sent. */
    sent: (): Promise<void> => messages.ended(),
  }
}

function linesOf(text: string): string[] {
  return text.split(/\r?\n/).filter((line) => line !== '')
}

function checked(name: SecretName, secret: string, from: string): PassedSecret {
  if (secret === '' && name !== 'app_key_previous') throw new ConfigError(name, [`${from} is empty`])
  return { secret, from }
}

/** Returns the content of a credential, if it exists. */
function readCredential(name: string, file: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException // node:fs and the decoder throw Errors.
    if (code === 'ENOENT') return undefined
    throw new ConfigError(name, [`the credential ${file} cannot be read: ${message}`], { cause: error })
  }
}

function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket()
  } catch {
    return false // It is not open.
  }
}

/** Returns how often to feed the watchdog, in milliseconds: twice per timeout. Undefined without a watchdog. */
function watchdogIntervalMs(env: NodeJS.ProcessEnv, pid: number): number | undefined {
  const { WATCHDOG_USEC: microseconds = '', WATCHDOG_PID: forPid = String(pid) } = env
  if (!/^[1-9]\d{0,15}$/.test(microseconds) || forPid !== String(pid)) return undefined
  return Math.min(Math.max(Number(microseconds) / 2000, 1), 2 ** 31 - 1)
}
