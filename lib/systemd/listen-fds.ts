/**
 * Socket activation: the listening socket that a service manager opened and passes on, by the rules of
 * sd_listen_fds(3). The kernel keeps its queue while the server is started anew, so that no client is refused.
 *
 * Surprise: the variables are taken out of the environment. They are for this process alone; a child that inherited
 * them would find other things behind these numbers.
 */
import { fstatSync } from 'node:fs'
import { ConfigError } from '../config/load.ts'

/** What the service manager passed. */
export interface PassedSocket {
  /** The file descriptor of the listening socket; undefined: none was passed, or not to this process. */
  readonly fd: number | undefined
  /** What the operator should know about it. */
  readonly warning?: string
}

/** The first descriptor that is passed: SD_LISTEN_FDS_START of sd_listen_fds(3). */
const firstFd = 3

const source = 'the socket of the service manager'

/**
 * Takes `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES` out of an environment and reads them. Sockets for another
 * process are left alone, with a warning.
 * @param pid this process
 * @throws ConfigError when there is more than one socket, or none behind the number
 */
export function takeListenFds(env: NodeJS.ProcessEnv, pid: number): PassedSocket {
  const { LISTEN_PID: forPid, LISTEN_FDS: count, LISTEN_FDNAMES: names } = env
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete env[name]
  if (count === undefined || count === '0') return { fd: undefined }
  if (forPid !== String(pid)) {
    const warning = `LISTEN_FDS is not used: LISTEN_PID is ${forPid ?? 'missing'}, and this is process ${pid}`
    return { fd: undefined, warning }
  }
  if (count !== '1') {
    const which = names === undefined ? '' : ` (${names})`
    throw new ConfigError(source, [
      `LISTEN_FDS must be 1: it is ${count}${which}; let svc.socket have one ListenStream=`,
    ])
  }
  if (!isSocket(firstFd)) {
    throw new ConfigError(source, [`file descriptor ${firstFd} is no socket, though LISTEN_FDS is 1`])
  }
  return { fd: firstFd }
}

function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket()
  } catch {
    return false // It is not open.
  }
}
