/**
 * The command `passwd`: sets the admin's name and password in the configuration file, by the rules of the first setup,
 * so that a server is never open to its first visitor.
 *
 * It saves a new secret too, which ends all earlier sessions. A running server uses the new values only after a
 * restart.
 */
import { chownSync, existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { checkSetup, makeCredentials, type SetupInput } from '../access/credentials.ts'
import { auditKeysOf, chooseAppKey } from '../config/app-key.ts'
import { errorOfValues, fileToWrite, type LoadedConfig } from '../config/load.ts'
import { md5Problem } from '../config/together.ts'
import { saveConfig } from '../config/save.ts'
import { auditFile } from '../log/audit-file.ts'
import { AuditLog } from '../log/audit-log.ts'
import { exitStatus, isFileError, textOfFileError } from '../process/process.ts'

/** Where the answers come from and where messages go: the standard streams of the process. */
interface PasswdStreams {
  /** A terminal is prompted, without echoing the password; other input has three lines: name, password, password. */
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  /** Prints a success. */
  readonly out: (text: string) => void
  /** Prints questions and problems. */
  readonly problem: (text: string) => void
}

const notThreeLines = 'Standard input must have three lines: the name, the password, and the password again'

/**
 * Prompts for a name and a password and saves them.
 * @param file the configuration file; a missing one, or a missing local one, is created with mode 0600
 * @param load reads that file; rejects with ConfigError
 * @returns the exit status: 0 saved, 1 cancelled or not saved, 2 the answers break a rule, 78 wrong configuration, or
 *   the crypto library refuses MD5
 */
export async function passwd(
  file: string,
  load: () => Promise<LoadedConfig>,
  streams = standardStreams(),
): Promise<number> {
  let loaded: LoadedConfig
  try {
    loaded = await load()
    const problem = md5Problem(loaded.config)
    if (problem !== undefined) throw errorOfValues(loaded, [problem])
  } catch (error) {
    if (!isFileError(error)) throw error
    streams.problem(textOfFileError(error))
    return exitStatus.config
  }
  const { input } = streams
  const answers = input.isTTY === true ? await promptUntilValid(input, streams.problem) : readAnswers(await text(input))
  if (typeof answers === 'string') {
    streams.problem(`${answers}\n`)
    return exitStatus.usage
  }
  if (answers === undefined) {
    streams.problem('Nothing was changed\n')
    return exitStatus.failed
  }
  return save(fileToWrite(file, loaded.config), loaded, answers, streams)
}

async function save(file: string, loaded: LoadedConfig, answers: SetupInput, streams: PasswdStreams): Promise<number> {
  const { config } = loaded
  const { user, password } = answers
  const created = await makeCredentials({ user, password, hardened: config['admin.hardened'], nowMs: Date.now() })
  try {
    saveConfig(file, { 'admin.user': created.user, 'admin.password': created.password, 'admin.secret': created.secret })
  } catch (error) {
    streams.problem(`${(error as Error).message}\n`) // saveConfig throws Errors
    return exitStatus.failed
  }
  streams.out(`Saved in ${file}. Restart a server that uses it.\n`)
  record(loaded, user, streams.problem)
  return exitStatus.ok
}

const noKey = 'Not recorded in the audit log: there is no app_key here to sign the record with\n'

/** Adds a record to the audit log. If that fails, it says why. */
function record({ config, folder }: LoadedConfig, user: string, problem: PasswdStreams['problem']): void {
  const chosen = chooseAppKey(config)
  if (!chosen.isLasting) return problem(noKey)
  const logFolder = resolve(folder, config['paths.log'])
  const path = join(logFolder, auditFile)
  const isNew = !existsSync(path)
  const consolePort = { out: problem, error: problem, waitingBytes: 0 }
  const report = (_: unknown, message: string): void => problem(`${message}\n`)
  const log = new AuditLog(logFolder, { report, consolePort, keys: auditKeysOf(config, chosen) })
  log.record({ by: 'passwd', user, what: 'admin.user and admin.password set', from: config['admin.user'], to: user })
  log.close()
  if (!isNew || log.lost > 0 || process.getuid?.() !== 0) return
  const { uid, gid } = statSync(logFolder) // The server, which has less rights than root, must be able to write there.
  chownSync(path, uid, gid)
}

/**
 * Prompts until the answers break no rule. Resolves with undefined when the person cancels (Ctrl-C, Ctrl-D) or the
 * terminal closes.
 * @param write prints on the same terminal
 */
async function promptUntilValid(
  input: PasswdStreams['input'],
  write: (text: string) => void,
): Promise<SetupInput | undefined> {
  let answered = 0
  const output = new Writable({
    decodeStrings: false,
    write: (shown: string, _encoding, done) => {
      if (answered % 3 === 0 || shown === '\r\n') write(shown) // Show only the first of the three answers, the name.
      done()
    },
  })
  const completer = (line: string): [string[], string] => [[], line] // Without one, Tab would be a character.
  const lines = createInterface({ input, output, completer, terminal: true, historySize: 0, prompt: 'Username: ' })
  lines.on('line', () => (answered += 1))
  const answers = lines[Symbol.asyncIterator]()
  const next = async (): Promise<string | undefined> => (await answers.next()).value
  try {
    for (;;) {
      lines.prompt()
      const user = await next()
      if (user !== undefined) write('Password (not shown): ')
      const password = await next()
      if (password !== undefined) write('Password again: ')
      const password2 = await next()
      if (user === undefined || password === undefined || password2 === undefined) {
        write('\r\n')
        return undefined
      }
      const problem = checkSetup({ user, password, password2 })
      if (problem === undefined) return { user, password, password2 }
      write(`${problem}\r\n`)
    }
  } finally {
    lines.close()
  }
}

/** Returns the answers in three lines, or a message with the problem. */
function readAnswers(lines: string): SetupInput | string {
  const [user, password, password2, ...rest] = lines.replace(/\r?\n$/, '').split(/\r?\n/)
  if (user === undefined || password === undefined || password2 === undefined || rest.some((line) => line !== '')) {
    return notThreeLines
  }
  return checkSetup({ user, password, password2 }) ?? { user, password, password2 }
}

function standardStreams(): PasswdStreams {
  return {
    input: process.stdin,
    out: (text) => void process.stdout.write(text),
    problem: (text) => void process.stderr.write(text),
  }
}
