import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** A program `systemd-notify` that records its messages. */
export interface FakeNotify {
  /** A PATH that begins with it. */
  readonly path: string
  /** Its calls so far, each with its arguments. */
  calls(): string[][]
  /** The environment of its last call. */
  environment(): string
}

/** Creates it. `ending` is the shell text at its end. */
export function fakeNotify(ending = 'exit 0'): FakeNotify {
  const folder = temporaryFolder()
  const [program, calls, environment] = ['systemd-notify', 'calls', 'environment'].map((name) => join(folder, name)) as [string, string, string]
  // A tab between arguments, a line for each call, in one write.
  writeFileSync(program, `#!/bin/sh\nenv > ${environment}\nprintf '%s\\n' "$(printf '%s\\t' "$@")" >> ${calls}\n${ending}\n`)
  chmodSync(program, 0o755)
  return {
    path: `${folder}:${process.env['PATH'] ?? ''}`,
    calls: () => (existsSync(calls) ? readFileSync(calls, 'utf8').split('\n').slice(0, -1).map((line) => line.split('\t').slice(0, -1)) : []),
    environment: () => readFileSync(environment, 'utf8'),
  }
}
