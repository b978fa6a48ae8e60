/** A PostgreSQL of a test's own: Debian's package `postgresql`, whose programs are not in the PATH there. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { temporaryFolder } from './temporary-folder.ts'

export interface PostgreSql {
  /** The connection parameters for a client. */
  readonly env: Readonly<Record<string, string>>
  /** Runs a statement as its owner; returns the output of `psql`, one row per line. */
  ask(statement: string): string
  /** Ends it, and its connections with it. */
  stop(): Promise<void>
  /** Starts it again. */
  start(): Promise<void>
}

/** Starts one, on a Unix socket alone; it ends with the test. It refuses to run as root, so then it runs as `nobody`. */
export async function startPostgreSql(t: Pick<TestContext, 'after'>): Promise<PostgreSql> {
  const folder = temporaryFolder()
  const nobody = 65_534
  const user = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {}
  if ('uid' in user) chownSync(folder, nobody, nobody)
  const options = { cwd: folder, ...user, env: { PATH: process.env['PATH'], LC_ALL: 'C' } }
  const program = (name: string): string => join(folderOfPrograms(), name)
  const data = join(folder, 'data')
  execFileSync(program('initdb'), ['-D', data, '-U', 'app', '-A', 'trust', '--no-sync', '-E', 'UTF8'], { ...options, stdio: 'pipe' })

  let child: ChildProcess
  const start = async (): Promise<void> => {
    const settings = ['listen_addresses=', `unix_socket_directories=${folder}`, 'fsync=off'].flatMap((each) => ['-c', each])
    child = spawn(program('postgres'), ['-D', data, ...settings], { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    await new Promise<void>((resolve, reject) => {
      child.on('exit', () => reject(new Error(`postgres ended:\n${said}`)))
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        said += text
        if (said.includes('ready to accept connections')) resolve()
      })
    })
  }
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null) return
    child.kill('SIGINT') // Its "fast shutdown": connections are ended, then it ends.
    await once(child, 'exit')
  }
  await start()
  t.after(stop)
  return {
    env: { PGHOST: folder, PGUSER: 'app', PGDATABASE: 'postgres' },
    ask: (statement) => execFileSync(program('psql'), ['-h', folder, '-U', 'app', '-d', 'postgres', '-Atc', statement], { ...options, encoding: 'utf8' }),
    start,
    stop,
  }
}

function folderOfPrograms(): string {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)).map((version) => join(debian, version, 'bin')) : []
  const found = [...versions, ...(process.env['PATH'] ?? '').split(':')].find((folder) => existsSync(join(folder, 'initdb')))
  if (found === undefined) throw new Error('Cannot run initdb: it is not there. Install it: apt-get install postgresql')
  return found
}
