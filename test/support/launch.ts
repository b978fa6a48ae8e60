import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until } from './until.ts'

/** The checkout. */
export const root = fileURLToPath(new URL('../../', import.meta.url))

/** Whether Node runs TypeScript. */
export const runsTypeScript = Boolean((process.features as { typescript?: string | false }).typescript)

/** How a process ended: its exit status, or the signal that ended it. */
export type Ending = number | NodeJS.Signals

/** A process of the launcher. */
export interface Launched {
  readonly child: ChildProcess
  /** Its output so far. */
  stdout(): string
  stderr(): string
  /** Resolves with the address of its `listening on` line. Rejects if it ends before. */
  listening(): Promise<string>
  /** Resolves when it has ended and all its output has been received. */
  readonly ended: Promise<Ending>
}

export interface LaunchOptions {
  readonly cwd: string
  /** Added to the environment of the tests. */
  readonly env?: Readonly<Record<string, string>>
  /** The launcher to run; by default that of this checkout. */
  readonly launcher?: string
  /** Options of Node; unless given, those by which it runs what the tests run, `lib/` or `dist/`. */
  readonly nodeOptions?: readonly string[]
  /** The program to run with `nodeOptions` and the launcher; by default this Node. */
  readonly program?: string
  /** A file descriptor that takes what it prints, which is then not seen here. */
  readonly output?: number
}

/** Starts the launcher in a separate process, which is killed when the test ends. */
export function launch(t: Pick<TestContext, 'after'>, args: readonly string[], options: LaunchOptions): Launched {
  const { launcher = `${root}bin/svc.js`, nodeOptions = optionsOfTarget(), program = process.execPath } = options
  const { NODE_OPTIONS: _options, SVC_CONFIG: _config, ...env } = process.env
  const child = spawn(program, [...nodeOptions, launcher, ...args], {
    cwd: options.cwd,
    env: { ...env, ...options.env },
    stdio: ['ignore', options.output ?? 'pipe', options.output ?? 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const ended = once(child, 'close').then(([status, signal]: (Ending | null)[]) => (status ?? signal) as Ending)
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const address = (): string | undefined => /listening on (http\S+)\n/.exec(stdout)?.[1]
  const listening = async (): Promise<string> => {
    await Promise.race([until(() => address() !== undefined), ended])
    const url = address()
    if (url === undefined) throw new Error(`It ended with ${String(await ended)} before it listened:\n${stdout}${stderr}`)
    return url
  }
  return { child, stdout: () => stdout, stderr: () => stderr, listening, ended }
}

/** Runs the launcher to its end. */
export async function runLauncher(
  t: Pick<TestContext, 'after'>,
  args: readonly string[],
  options: LaunchOptions,
): Promise<{ status: Ending; stdout: string; stderr: string }> {
  const launched = launch(t, args, options)
  const status = await launched.ended
  return { status, stdout: launched.stdout(), stderr: launched.stderr() }
}

/** Options of Node: `lib/` where Node does not run TypeScript needs tsx, `dist/` where it does needs that to be turned off. */
export function optionsOfTarget(): string[] {
  if (process.env['SVC_TEST_TARGET'] !== 'dist') return optionsOfSources()
  return runsTypeScript ? ['--no-experimental-strip-types'] : []
}

/** Options of Node by which the launcher runs `lib/`. */
export function optionsOfSources(): string[] {
  return runsTypeScript ? [] : ['--import', import.meta.resolve('tsx')]
}
