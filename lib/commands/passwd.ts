/**
 * The command `passwd`: sets the admin's name and password in the configuration file, by the rules of the first setup,
 * so that a server is never open to its first visitor.
 *
 * It saves a new secret too, which ends all earlier sessions. A running server uses the new values only after a
 * restart.
 *
 * With `--totp` it also makes a second factor, and prints its secret and recovery codes, once. Without, the second
 * factor stays as it is.
 */
import { isUtf8 } from 'node:buffer'
import { chownSync, existsSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { credentialsOf, settingsOf } from '../access/credential-store.ts'
import { checkSetup, makeCredentials, type SetupInput } from '../access/credentials.ts'
import { makeRecoveryCodes } from '../access/recovery-codes.ts'
import { makeTotpSecret, otpauthAddress } from '../access/totp.ts'
import { auditKeysOf, chooseAppKey } from '../config/app-key.ts'
import { errorOfValues, fileToWrite, type LoadedConfig } from '../config/load.ts'
import { md5Problem, sha1Problem } from '../config/together.ts'
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

/** A new second factor. */
interface MadeFactor {
  /** For `admin.totp`. */
  readonly secret: string
  /** The recovery codes, and their hashes. */
  readonly codes: readonly string[]
  readonly hashes: readonly string[]
}

const kept = 'The second factor is unchanged: `svc passwd --totp` makes a new one; empty admin.totp to turn it off.\n'
const notThreeLines = 'Standard input must have three lines: the name, the password, and the password again'

/**
 * Prompts for a name and a password and saves them.
 * @param file the configuration file; a missing one, or a missing local one, is created with mode 0600
 * @param load reads that file; rejects with ConfigError
 * @param withTotp whether to make a second factor
 * @returns the exit status: 0 saved, 1 cancelled or not saved, 2 the answers break a rule, 78 wrong configuration, or
 *   the crypto library refuses MD5, or HMAC-SHA1 for a second factor
 */
export async function passwd(
  file: string,
  load: () => Promise<LoadedConfig>,
  withTotp = false,
  streams = standardStreams(),
): Promise<number> {
  const made = withTotp ? { secret: makeTotpSecret(), ...makeRecoveryCodes() } : undefined
  let loaded: LoadedConfig
  try {
    loaded = await load()
    const wanted = { ...loaded.config, ...(made !== undefined && { 'admin.totp': made.secret }) }
    const problem = md5Problem(wanted) ?? sha1Problem(wanted)
    if (problem !== undefined) throw errorOfValues(loaded, [problem])
  } catch (error) {
    if (!isFileError(error)) throw error
    streams.problem(textOfFileError(error))
    return exitStatus.config
  }
  const { input } = streams
  const isTerminal = input.isTTY === true
  const answers = isTerminal ? await promptUntilValid(input, streams.problem) : readAnswers(await buffer(input))
  if (typeof answers === 'string') {
    streams.problem(`${answers}\n`)
    return exitStatus.usage
  }
  if (answers === undefined) {
    streams.problem('Nothing was changed\n')
    return exitStatus.failed
  }
  return save(fileToWrite(file, loaded.config), loaded, answers, made, streams)
}

async function save(
  file: string,
  loaded: LoadedConfig,
  { user, password }: SetupInput,
  made: MadeFactor | undefined,
  streams: PasswdStreams,
): Promise<number> {
  const { config } = loaded
  const before = credentialsOf(config).secondFactor
  const secondFactor = made === undefined ? before : { secret: made.secret, recoveryCodes: made.hashes }
  const hardened = config['admin.hardened']
  const created = await makeCredentials({ user, password, hardened, secondFactor, nowMs: Date.now() })
  try {
    saveConfig(file, {
      'admin.user': created.user,
      'admin.password': created.password,
      'admin.secret': created.secret,
      ...(made !== undefined && settingsOf(secondFactor)),
    })
  } catch (error) {
    streams.problem(`${(error as Error).message}\n`) // saveConfig throws Errors
    return exitStatus.failed
  }
  streams.out(`Saved in ${file}. Restart a server that uses it.\n`)
  if (made !== undefined) streams.out(textOf(made, user))
  else if (before !== undefined) streams.out(kept)
  const keys = made === undefined ? 'admin.user and admin.password' : 'admin.user, admin.password and admin.totp'
  record(loaded, user, `${keys} set`, streams.problem)
  return exitStatus.ok
}

const noKey = 'Not recorded in the audit log: there is no app_key here to sign the record with\n'

/** Adds a record to the audit log. If that fails, it says why. */
function record(
  { config, folder }: LoadedConfig,
  user: string,
  what: string,
  problem: PasswdStreams['problem'],
): void {
  const chosen = chooseAppKey(config)
  if (!chosen.isLasting) return problem(noKey)
  const logFolder = resolve(folder, config['paths.log'])
  const path = join(logFolder, auditFile)
  const isNew = !existsSync(path)
  const consolePort = { out: problem, error: problem, waitingBytes: 0 }
  const report = (_: unknown, message: string): void => problem(`${message}\n`)
  const log = new AuditLog(logFolder, { report, consolePort, keys: auditKeysOf(config, chosen) })
  log.record({ by: 'passwd', user, what, from: config['admin.user'], to: user })
  log.close()
  if (!isNew || log.lost > 0 || process.getuid?.() !== 0) return
  const { uid, gid } = statSync(logFolder) // The server, which has less rights than root, must be able to write there.
  chownSync(path, uid, gid)
}

/** What to do with a new second factor. */
function textOf({ secret, codes }: MadeFactor, user: string): string {
  const address = otpauthAddress(secret, { issuer: `svc on ${hostname()}`, user })
  const lines = codes.map((code) => `  ${code}`)
  return [
    '',
    'The sign-in now asks for a code. Add the account to an authenticator app, by its secret or',
    'its address. Keep the recovery codes elsewhere: each replaces a code once, for a lost phone.',
    'None of this is shown again.',
    '',
    `Secret: ${secret}`,
    `Address: ${address}`,
    'Recovery codes:',
    ...lines,
    '',
  ].join('\n')
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
function readAnswers(bytes: Buffer): SetupInput | string {
  if (!isUtf8(bytes)) return 'Standard input must be UTF-8'
  const [user, password, password2, ...rest] = bytes.toString().replace(/\r?\n$/, '').split(/\r?\n/)
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
