/**
 * A Debian or Ubuntu that is booted by its own systemd, as process 1 of a container (systemd-nspawn): a machine to install the
 * server on. Its network has nothing but a loopback address. Needs root, and Debian's packages `mmdebstrap`,
 * `systemd-container` and `wrk`; for Ubuntu its keys, `ubuntu-archive-keyring`.
 *
 * Surprise: commands enter through nsenter(1), so that the machine outside may have another first process than systemd.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'

/** A machine that has booted. */
export interface Machine {
  /**
   * Runs commands in the shell of the user `admin`, who may `sudo`, in the home folder. The first that fails ends them, as
   * do 300 seconds.
   * @param input what they read from standard input
   * @returns what they printed, on both streams
   * @throws Error with that when one failed
   */
  run(commands: string, input?: string): Promise<string>
  /** The words before a program of this machine that shall use the network of that one. */
  readonly inItsNetwork: readonly string[]
  /** Shuts it down. Nothing of it is left. */
  stop(): Promise<void>
}

export const suites = ['bookworm', 'trixie', 'noble'] as const
export type Suite = (typeof suites)[number]

const packages = [
  ...['systemd-sysv', 'dbus', 'libnss-systemd', 'libnss-myhostname', 'sudo', 'curl', 'logrotate', 'procps', 'ca-certificates'],
  ...['rsync', 'cron'],
]
const makeUser = 'chroot "$1" useradd -m -s /bin/bash admin && echo "admin ALL=(ALL) NOPASSWD: ALL" >"$1/etc/sudoers.d/admin"'
const bootLimitMs = 300_000

/**
 * Makes the root of a machine, unless the folder is there already, and boots a copy of it.
 * @param folder the root; kept, so that the next machine need not be made again
 * @param suite what to make it from: `bookworm` (Debian 12), `trixie` (13, with its Node) or `noble` (Ubuntu 24.04)
 * @param files files of this machine that are there too, read-only: their places there, and here
 */
export async function bootDebian(folder: string, suite: Suite, files: Readonly<Record<string, string>>): Promise<Machine> {
  if (!existsSync(folder)) {
    const include = [...packages, suite === 'trixie' ? 'nodejs' : 'libstdc++6']
    must('mmdebstrap', ['--variant=minbase', `--include=${include.join()}`, `--customize-hook=${makeUser}`, suite, folder])
  }
  const binds = Object.entries(files).map(([there, here]) => `--bind-ro=${here}:${there}`)
  const flags = ['--quiet', '--boot', '--ephemeral', '--register=no', '--keep-unit', '--private-network', '--machine=svc-machine']
  const child = spawn('systemd-nspawn', [...flags, '--console=pipe', `--directory=${folder}`, ...binds], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ended = once(child, 'close')
  await once(child, 'spawn')
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM') // It asks the machine to power off.
    await ended
  }
  try {
    const first = await firstProcess(child.pid as number) // It was spawned.
    return { run: (commands, input) => runIn(first, commands, input), inItsNetwork: ['nsenter', `--target=${first}`, '--net', '--'], stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function must(program: string, args: readonly string[]): void {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit' })
  if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? `status ${status}`}`)
}

/** The process that is number 1 in the machine, once that has booted. */
async function firstProcess(nspawn: number): Promise<number> {
  const deadline = performance.now() + bootLimitMs
  for (;;) {
    // Before it is systemd, the first process is another, which may end while it is looked at.
    const pid = Number.parseInt(readFileSync(`/proc/${nspawn}/task/${nspawn}/children`, 'utf8'), 10)
    const file = `/proc/${pid}/comm`
    if (existsSync(file) && readFileSync(file, 'utf8') === 'systemd\n') {
      const state = await runIn(pid, 'systemctl is-system-running 2>&1 || true')
      if (/^(?:running|degraded)$/m.test(state)) return pid
    }
    if (performance.now() > deadline) throw new Error(`The machine did not boot within ${bootLimitMs / 1000} seconds`)
    await delay(200)
  }
}

async function runIn(first: number, commands: string, input = ''): Promise<string> {
  const enter = [`--target=${first}`, '--all', '--', 'runuser', '-u', 'admin', '--']
  const env = ['env', '-i', '-C', '/home/admin', 'HOME=/home/admin', 'PATH=/usr/local/bin:/usr/bin:/bin']
  const shell = ['timeout', '300', 'bash', '--norc', '-euo', 'pipefail', '-c', `exec 2>&1\n${commands}`]
  const child = spawn('nsenter', [...enter, ...env, ...shell], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => {}) // Commands need not read it.
  child.stdin.end(input)
  const [output, [status]] = await Promise.all([text(child.stdout), once(child, 'close')])
  if (status !== 0) throw new Error(`status ${status} of:\n${commands}\n${output}`)
  return output
}
