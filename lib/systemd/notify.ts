/**
 * Tells the service manager what the server is doing: ready, reloading, stopping, alive (sd_notify(3)). Without
 * `NOTIFY_SOCKET` nothing is done, and nothing is started.
 *
 * Surprise: each message is a short-lived child, `systemd-notify`, since Node has no datagram sockets of the file
 * system. So the unit needs `NotifyAccess=all`. The children run one after the other, which keeps the messages in
 * order.
 */
import type { ExecFileException } from 'node:child_process'
import { SerialQueue } from '../base/serial-queue.ts'

/** Tells the service manager. None of these waits, and none of them fails. */
export interface Notifier {
  /**
   * The server serves; from now on the watchdog is fed, where there is one. `status` is shown by `systemctl status`.
   */
  ready(status: string): void
  /** A reload has begun. Before `ready`, and in a stop, a reload is not told. */
  reloading(): void
  /** A reload has ended. */
  reloaded(status: string): void
  /** The stop has begun. */
  stopping(): void
  /** Resolves when all has been told so far. */
  told(): Promise<void>
}

export interface NotifierOptions {
  /**
   * Where `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` are taken out of: children of the server get none of
   * them.
   */
  readonly env: NodeJS.ProcessEnv
  /** The main process. */
  readonly pid: number
  /** Told when a message could not be sent. */
  readonly warn: (message: string) => void
}

/** A child that takes longer is ended: the service manager does not read. */
const patienceMs = 10_000

const nothing = (): void => {}
const nobody: Notifier = {
  ready: nothing,
  reloading: nothing,
  reloaded: nothing,
  stopping: nothing,
  told: () => Promise.resolve(),
}

/** Makes the notifier of this process, which does nothing where no service manager listens. */
export function createNotifier({ env, pid, warn }: NotifierOptions): Notifier {
  const { NOTIFY_SOCKET: socket, PATH: path } = env
  const watchdogMs = watchdogIntervalMs(env, pid)
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name]
  if (socket === undefined || socket === '') return nobody
  const childEnv = { NOTIFY_SOCKET: socket, ...(path !== undefined && { PATH: path }) }
  const { execFile } = process.getBuiltinModule('node:child_process') // Loaded where it is used.
  const messages = new SerialQueue()
  let serving = false
  let feeding = false

  /** Tells the watchdog, unless it has not yet heard of the last time. */
  function feed(): void {
    if (feeding) return
    feeding = true
    send('WATCHDOG=1')
    void messages.ended().then(() => (feeding = false))
  }

  function send(...assignments: readonly string[]): void {
    // What cannot even be started may throw: ENOMEM.
    messages.run(() => run(assignments)).catch((error: Error) => {
      warn(`the service manager was not told ${assignments[0]}: ${error.message}`)
    })
  }

  function run(assignments: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (error: ExecFileException | null, _out: string, complaint: string): void => {
        if (error === null) resolve()
        else reject(complaint.trim() === '' ? error : new Error(complaint.trim()))
      }
      execFile('systemd-notify', [`--pid=${pid}`, ...assignments], { env: childEnv, timeout: patienceMs }, done)
    })
  }

  return {
    ready: (status) => {
      serving = true
      send('READY=1', `STATUS=${status}`)
      if (watchdogMs !== undefined) setInterval(feed, watchdogMs).unref()
    },
    reloading: () => {
      // Both clocks are CLOCK_MONOTONIC; the service manager compares.
      const now = process.hrtime.bigint() / 1000n
      if (serving) send('RELOADING=1', `MONOTONIC_USEC=${now}`, 'STATUS=reloading')
    },
    reloaded: (status) => {
      if (serving) send('READY=1', `STATUS=${status}`)
    },
    stopping: () => {
      serving = false
      send('STOPPING=1', 'STATUS=stopping')
    },
    told: () => messages.ended(),
  }
}

/**
 * How often the watchdog wants to hear, in milliseconds: half of its time. Undefined: there is none for this process.
 */
function watchdogIntervalMs(env: NodeJS.ProcessEnv, pid: number): number | undefined {
  const { WATCHDOG_USEC: microseconds = '', WATCHDOG_PID: forPid = String(pid) } = env
  if (!/^[1-9]\d{0,15}$/.test(microseconds) || forPid !== String(pid)) return undefined
  return Math.min(Math.max(Number(microseconds) / 2000, 1), 2 ** 31 - 1)
}
