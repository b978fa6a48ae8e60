/**
 * Notifies the service manager of the state of the server: ready, reloading, stopping, alive (sd_notify(3)).
 *
 * Node has no datagram sockets in the file system, so each message is sent by a short-lived child, `systemd-notify`,
 * and the unit needs `NotifyAccess=all`. The children run one after the other, which keeps the messages in order.
 */
import type { ExecFileException } from 'node:child_process'
import { SerialQueue } from '../base/serial-queue.ts'

/** Notifies the service manager. None of its methods waits or fails. */
export interface Notifier {
  /**
   * The server accepts requests. From now on the watchdog, if there is one, is fed. `systemctl status` shows `status`.
   */
  ready(status: string): void
  /** A reload has begun. Nothing is sent before `ready` and during a stop. */
  reloading(): void
  /** A reload has ended. */
  reloaded(status: string): void
  /** The stop has begun. */
  stopping(): void
  /** Resolves when all messages so far have been sent. */
  sent(): Promise<void>
}

/** After this time a child is ended: the service manager does not read. */
const timeoutMs = 10_000

/**
 * Makes the notifier of this process; undefined where no service manager waits for notifications.
 * @param env `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` are removed from it: no child process gets them
 * @param pid the main process
 * @param warn called when a message could not be sent
 */
export function createNotifier(
  env: NodeJS.ProcessEnv,
  pid: number,
  warn: (message: string) => void,
): Notifier | undefined {
  const { NOTIFY_SOCKET: socket, PATH: path } = env
  const watchdogMs = watchdogIntervalMs(env, pid)
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name]
  if (socket === undefined || socket === '') return undefined
  const childEnv = { NOTIFY_SOCKET: socket, ...(path !== undefined && { PATH: path }) }
  const { execFile } = process.getBuiltinModule('node:child_process') // Loaded where it is used.
  const messages = new SerialQueue()
  let serving = false
  let feeding = false

  /** Feeds the watchdog, unless the last such message is still on its way. */
  function feed(): void {
    if (feeding) return
    feeding = true
    send('WATCHDOG=1')
    void messages.ended().then(() => (feeding = false))
  }

  function send(...assignments: readonly string[]): void {
    // A child that cannot be started may throw: ENOMEM.
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
      execFile('systemd-notify', [`--pid=${pid}`, ...assignments], { env: childEnv, timeout: timeoutMs }, done)
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
    sent: () => messages.ended(),
  }
}

/** How often to feed the watchdog, in milliseconds: twice in its time. Undefined: this process has none. */
function watchdogIntervalMs(env: NodeJS.ProcessEnv, pid: number): number | undefined {
  const { WATCHDOG_USEC: microseconds = '', WATCHDOG_PID: forPid = String(pid) } = env
  if (!/^[1-9]\d{0,15}$/.test(microseconds) || forPid !== String(pid)) return undefined
  return Math.min(Math.max(Number(microseconds) / 2000, 1), 2 ** 31 - 1)
}
