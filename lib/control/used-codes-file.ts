/** The file `totp-used` in `paths.cache`: the used codes of the second factor, for the next start. */
import { closeSync, constants, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { areUsedCodes, type UsedCodes } from '../access/used-codes.ts'
import { isError, reasonOf } from '../base/reason.ts'
import { replaceFileSync } from '../files/replace-file.ts'
import type { StateContent } from './desired-state.ts'

const { O_CREAT, O_EXCL, O_SYNC, O_WRONLY } = constants

/** The file with the used codes. */
export class UsedCodesFile {
  readonly #file: string
  readonly #onProblem: (message: string) => void
  #problem: string | undefined

  /**
   * @param folder `paths.cache`, absolute
   * @param onProblem called once when the file cannot be read or written
   */
  constructor(folder: string, onProblem: (message: string) => void) {
    this.#file = join(folder, 'totp-used')
    this.#onProblem = onProblem
  }

  /** Returns the used codes; none if there is no file, or an unreadable or damaged one, which is reported. */
  read(): UsedCodes {
    try {
      const codes: unknown = JSON.parse(readFileSync(this.#file, 'utf8'))
      if (areUsedCodes(codes)) return codes
      throw new Error('it has content that svc does not write')
    } catch (error) {
      const isMissing = isError(error) && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
      const effect = 'a code that was used before the start is good again'
      if (!isMissing) this.#report(`cannot read ${this.#file} (${reasonOf(error)}): ${effect}`)
      return {}
    }
  }

  /** Writes the used codes of a state, if they differ from those of the state before. Never fails. */
  follow({ usedCodes: before }: StateContent, { usedCodes: after }: StateContent): void {
    if (after !== undefined && after !== before && JSON.stringify(after) !== JSON.stringify(before)) this.write(after)
  }

  /** Writes the used codes, with mode 0600. Never fails: a problem is reported, and the sign-in goes on. */
  write(codes: UsedCodes): void {
    try {
      mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 })
      const text = `${JSON.stringify(codes)}\n`
      replaceFileSync(this.#file, (temporary) => writeSynced(temporary, text))
      this.#problem = undefined
    } catch (error) {
      const problem = `cannot save ${this.#file} (${reasonOf(error)}): a used code of the second factor is good again `
      this.#report(`${problem}if the server restarts within a minute`)
    }
  }

  /** Returns the current problem, if any. */
  warnings(): readonly string[] {
    return this.#problem === undefined ? [] : [this.#problem]
  }

  #report(problem: string): void {
    const isNew = this.#problem === undefined
    this.#problem = problem
    if (isNew) this.#onProblem(problem)
  }
}

/** Writes a new file to disk. The permission model has no fsync, but allows O_SYNC. */
function writeSynced(path: string, text: string): void {
  const descriptor = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_SYNC, 0o600)
  try {
    writeFileSync(descriptor, text)
  } finally {
    closeSync(descriptor)
  }
}
