/**
 * The command `passwd`: sets the admin's name and password in the configuration file, by the rules of the first setup,
 * so that a server need never be open to its first visitor.
 *
 * A new secret is saved too, which ends the sessions of the old password. A running server uses all that only after a
 * restart.
 */
import { text } from 'node:stream/consumers'
import { StringDecoder } from 'node:string_decoder'
import { checkSetup, makeCredentials, type SetupInput } from '../admin/credentials.ts'
import { fileToWrite, type LoadedConfig } from '../config/load.ts'
import { saveConfig } from '../config/save.ts'
import type { Config } from '../config/table.ts'
import { exitStatus, isFileError, textOfFileError } from './process.ts'

/** Where the answers come from and where messages go: the standard streams of the process. */
interface PasswdStreams {
  /** A terminal asks, without showing the password; any other input has three lines: name, password, password. */
  readonly input: AsyncIterable<Uint8Array> & Partial<TerminalInput> & { readonly isTTY?: boolean }
  /** Prints a success. */
  readonly out: (text: string) => void
  /** Prints questions and problems. */
  readonly problem: (text: string) => void
}

/** A terminal, such as `process.stdin`. */
interface TerminalInput extends AsyncIterable<Uint8Array> {
  setRawMode(on: boolean): unknown
}

/** Asks one question. Resolves with undefined when the person gave up or the terminal is gone. */
type Ask = (prompt: string, isShown: boolean) => Promise<string | undefined>

const keys = { end: '\u0003', endOfInput: '\u0004', clear: '\u0015', escape: '\u001b' } as const
const backspaces = ['\b', '\u007f']
const lineEnds = ['\r', '\n']

const notThreeLines = 'Standard input must have three lines: the name, the password, and the password again'

/**
 * Asks for a name and a password and saves them.
 * @param file the configuration file; a missing one, or a missing local one, is made with mode 0600
 * @param load reads that file; rejects with ConfigError
 * @returns the exit status: 0 saved, 1 given up or not saved, 2 the answers break a rule, 78 wrong configuration
 */
export async function passwd(
  file: string,
  load: () => Promise<LoadedConfig>,
  streams = standardStreams(),
): Promise<number> {
  let config: Config
  try {
    config = (await load()).config
  } catch (error) {
    if (!isFileError(error)) throw error
    streams.problem(textOfFileError(error))
    return exitStatus.config
  }
  const { input } = streams
  const answers = isTerminal(input) ? await askUntilRight(input, streams.problem) : readAnswers(await text(input))
  if (typeof answers === 'string') {
    streams.problem(`${answers}\n`)
    return exitStatus.usage
  }
  if (answers === undefined) {
    streams.problem('Nothing was changed\n')
    return exitStatus.failed
  }
  return save(fileToWrite(file, config), config, answers, streams)
}

async function save(file: string, config: Config, answers: SetupInput, streams: PasswdStreams): Promise<number> {
  const { user, password } = answers
  const made = await makeCredentials({ user, password, hardened: config['admin.hardened'], nowMs: Date.now() })
  try {
    saveConfig(file, { 'admin.user': made.user, 'admin.password': made.password, 'admin.secret': made.secret })
  } catch (error) {
    streams.problem(`${(error as Error).message}\n`) // saveConfig throws Errors
    return exitStatus.failed
  }
  streams.out(`Saved in ${file}. Restart a server that uses it.\n`)
  return exitStatus.ok
}

/** Asks a person until the answers break no rule. Resolves with undefined when the person gave up. */
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

/** The answers in three lines, or a message that says what is wrong with them. */
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

/**
 * Runs `talk` with the terminal in raw mode, so the keys that edit a line are handled here: Backspace, Ctrl-U (empties
 * the line), Ctrl-C and Ctrl-D (give up). Other keys, such as the arrows, do nothing. Afterwards the terminal is
 * closed, in its usual mode.
 * @param write prints on the same terminal
 */
async function withTerminal<Result>(
  input: TerminalInput,
  write: (text: string) => void,
  talk: (ask: Ask) => Promise<Result>,
): Promise<Result> {
  const characters = readCharacters(input)
  input.setRawMode(true)
  try {
    return await talk((prompt, isShown) => readLine(characters, write, prompt, isShown))
  } finally {
    input.setRawMode(false)
    await characters.return(undefined)
  }
}

async function readLine(
  characters: AsyncIterator<string>,
  write: (text: string) => void,
  prompt: string,
  isShown: boolean,
): Promise<string | undefined> {
  const line: string[] = []
  write(prompt)
  for (;;) {
    const { value: key, done } = await characters.next()
    if (done === true || key === keys.end || (key === keys.endOfInput && line.length === 0)) {
      write('\r\n')
      return undefined
    }
    if (lineEnds.includes(key)) {
      write('\r\n')
      return line.join('')
    }
    if (key === keys.escape) await skipSequence(characters)
    else if (key === keys.clear) line.length = 0
    else if (backspaces.includes(key)) line.pop()
    else if (key >= ' ') line.push(key)
    if (isShown) write(`\r\u001b[K${prompt}${line.join('')}`)
  }
}

/** Skips what a key such as an arrow sends after Escape: `[` or `O`, maybe parameters, and a last character. */
async function skipSequence(characters: AsyncIterator<string>): Promise<void> {
  const { value } = await characters.next()
  if (value !== '[' && value !== 'O') return
  for (;;) {
    const { value: part, done } = await characters.next()
    if (done === true || /^[@-~]$/.test(part)) return
  }
}

async function* readCharacters(input: AsyncIterable<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new StringDecoder('utf8')
  for await (const chunk of input) yield* decoder.write(Buffer.from(chunk))
}
