/**
 * The word `passwd`: sets the admin's name and password in the configuration file, by the rules of the first setup, so
 * that a server need never stand open for the first visitor.
 *
 * Surprise: a new secret is written too, which ends the sessions of the old password. A running server knows nothing of
 * all that until it is started anew.
 */
import { text } from 'node:stream/consumers'
import { checkSetup, makeCredentials, type SetupInput } from '../admin/credentials.ts'
import type { LoadedConfig } from '../config/load.ts'
import { saveConfig } from '../config/save.ts'
import type { Config } from '../config/table.ts'
import { isFileError, textOfFileError } from './failure.ts'
import { withTerminal, type Ask, type TerminalInput } from './terminal-lines.ts'

/** Where the answers come from and where words go: the standard streams of the process. */
export interface PasswdStreams {
  /** A terminal is asked, without showing the password; anything else has three lines: name, password, password. */
  readonly input: AsyncIterable<Uint8Array> & Partial<TerminalInput> & { readonly isTTY?: boolean }
  /** Takes what went well. */
  readonly out: (text: string) => void
  /** Takes questions and what went wrong. */
  readonly problem: (text: string) => void
}

const notThreeLines = 'Standard input must have three lines: the name, the password, and the password again'

/**
 * Asks and saves.
 * @param file the configuration file; it is made (mode 0600) when it is not there
 * @param load reads that file; throws ConfigError
 * @returns the exit status: 0 saved, 1 given up or not saved, 2 the answers break a rule, 78 wrong configuration
 */
export async function passwd(file: string, load: () => LoadedConfig, streams = standardStreams()): Promise<number> {
  let config: Config
  try {
    config = load().config
  } catch (error) {
    if (!isFileError(error)) throw error
    streams.problem(textOfFileError(error))
    return 78
  }
  const { input } = streams
  const answers = isTerminal(input) ? await askUntilRight(input, streams.problem) : readAnswers(await text(input))
  if (typeof answers === 'string') {
    streams.problem(`${answers}\n`)
    return 2
  }
  if (answers === undefined) {
    streams.problem('Nothing was changed\n')
    return 1
  }
  return save(file, config, answers, streams)
}

async function save(file: string, config: Config, answers: SetupInput, streams: PasswdStreams): Promise<number> {
  const { user, password } = answers
  const made = await makeCredentials({ user, password, hardened: config['admin.hardened'], nowMs: Date.now() })
  try {
    saveConfig(file, { 'admin.user': made.user, 'admin.password': made.password, 'admin.secret': made.secret })
  } catch (error) {
    streams.problem(`${(error as Error).message}\n`) // saveConfig throws Errors
    return 1
  }
  streams.out(`Saved in ${file}. A server that runs with it has to be started anew.\n`)
  return 0
}

/** The answers of a person, asked again until they break no rule; undefined when they gave up. */
function askUntilRight(input: TerminalInput, write: (text: string) => void): Promise<SetupInput | undefined> {
  return withTerminal(input, write, async (ask) => {
    for (;;) {
      const answers = await askOnce(ask)
      const problem = answers === undefined ? undefined : checkSetup(answers)
      if (problem === undefined) return answers
      write(`${problem}\r\n`)
    }
  })
}

async function askOnce(ask: Ask): Promise<SetupInput | undefined> {
  const user = await ask('Username: ', true)
  if (user === undefined) return undefined
  const password = await ask('Password (not shown): ', false)
  if (password === undefined) return undefined
  const password2 = await ask('Password again: ', false)
  return password2 === undefined ? undefined : { user, password, password2 }
}

/** The answers of three lines, or what is wrong with them. */
function readAnswers(lines: string): SetupInput | string {
  const [user, password, password2, ...rest] = lines.split(/\r?\n/)
  if (user === undefined || password === undefined || password2 === undefined || rest.some((line) => line !== '')) {
    return notThreeLines
  }
  return checkSetup({ user, password, password2 }) ?? { user, password, password2 }
}

function isTerminal(input: PasswdStreams['input']): input is PasswdStreams['input'] & TerminalInput {
  return input.isTTY === true && input.setRawMode !== undefined
}

function standardStreams(): PasswdStreams {
  return {
    input: process.stdin,
    out: (text) => void process.stdout.write(text),
    problem: (text) => void process.stderr.write(text),
  }
}
