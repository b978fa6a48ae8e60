/**
 * Reads the command line: the command, and the options before or after it. It prints and throws nothing: wrong usage is
 * a result too, with a message that names the wrong part.
 */
import { parseArgs } from 'node:util'
import { didYouMean } from '../base/nearest.ts'
import { readValue } from '../base/value.ts'
import { configTable } from '../config/table.ts'
import type { Config } from '../config/table.ts'

/** The options of the commands that read the configuration. */
export interface CommandOptions {
  /** `--config`; undefined: the usual places are searched. */
  readonly config: string | undefined
  /** `--host`, `--port` and `--env`, checked. */
  readonly overrides: Partial<Pick<Config, 'server.host' | 'server.port' | 'app.env'>>
}

/** The command to run, or wrong usage. */
export type Command =
  | ({ readonly word: Exclude<ServerWord, keyof typeof ownOptions | 'backup' | 'audit'> } & CommandOptions)
  | ({ readonly word: 'permissions'; readonly write: readonly string[] } & CommandOptions)
  | ({ readonly word: 'types'; readonly checks: boolean } & CommandOptions)
  | ({ readonly word: 'passwd'; readonly totp: boolean } & CommandOptions)
  | ({ readonly word: 'openapi'; readonly out: string | undefined } & CommandOptions)
  | ({ readonly word: 'backup'; readonly target: string } & CommandOptions)
  | ({ readonly word: 'audit'; readonly files: readonly string[]; readonly head: string | undefined } & CommandOptions)
  | { readonly word: 'init'; readonly folder: string; readonly typeScript: boolean }
  | { readonly word: 'docs'; readonly port: number }
  | { readonly word: 'digest'; readonly manifest: boolean }
  | { readonly word: 'verify'; readonly manifest: string; readonly key: string | undefined }
  | { readonly word: 'help' | 'version' }
  /** Wrong usage, exit status 2; `error` is the message. */
  | { readonly word: 'usage'; readonly error: string }

type ServerWord = 'start' | 'check' | 'routes' | 'types' | 'openapi' | 'passwd' | 'permissions' | 'backup' | 'audit'
  | 'reload'

/** The output of `--help`. */
export const helpText = `Usage: svc [start] [options]   runs the server
       svc reload [options]    sends SIGHUP to the running server, and waits
                               for the reload; 1 when it was refused
       svc check [options]     checks configuration, routes, middleware, actions
       svc routes [options]    prints the route table
       svc types [options] [--check]
                               writes svc.routes.d.ts, the types of the routes;
                               with --check only says whether it is old
       svc openapi [options] [--out FILE]
                               describes the routes as OpenAPI 3.1
       svc backup [options] FILE
                               copies paths.data, while the server runs
       svc audit [options] [FILE ...] [--head MAC]
                               checks that the records of the audit log follow
                               each other, and that one has this mac
       svc init DIR [--ts]     makes a new application in an empty folder;
                               with --ts in TypeScript
       svc docs [--port PORT]  shows the documents as a site with a search, on
                               127.0.0.1, port 8090 unless --port is given
       svc passwd [options] [--totp]
                               sets the admin's name and password in the file;
                               with --totp also a second factor, and prints it
       svc permissions [options] [--write DIR ...]
                               prints a systemd drop-in that runs the server
                               under Node's permission model (24 and later);
                               DIR: a folder that the application writes to
       svc digest [--manifest]
                               prints the SHA-256 of the server's code, of each
                               part and all; --manifest: of each file, as JSON
       svc verify MANIFEST [--key PUBLIC.pem]
                               compares the code with a manifest; with --key
                               checks MANIFEST.sig, its Ed25519 signature
       svc --help | --version

Options, before or after the word:
  --config FILE   the configuration file; else $SVC_CONFIG, else svc.json here,
                  else the one that comes with the server
  --host HOST     the address to listen on, instead of server.host
  --port PORT     the port, instead of server.port; 0 takes any free one
  --env ENV       dev or prod, instead of app.env
  -h, --help      prints this
  -v, --version   prints the version

Exit status: 0 done or stopped as asked, 1 failed while running, 2 wrong usage,
78 wrong configuration.
`

const serverWords: readonly ServerWord[] = [
  ...(['start', 'check', 'routes', 'types', 'openapi', 'passwd', 'permissions', 'backup', 'audit', 'reload'] as const),
]
/** The words that take a path. */
const wordsWithPath = ['init', 'backup', 'verify']
const words: readonly string[] = [...serverWords, 'init', 'docs', 'digest', 'verify']
const options = {
  config: { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  env: { type: 'string' },
  write: { type: 'string', multiple: true },
  check: { type: 'boolean' },
  out: { type: 'string' },
  head: { type: 'string' },
  ts: { type: 'boolean' },
  totp: { type: 'boolean' },
  manifest: { type: 'boolean' },
  key: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const
const overrideKeys = { host: 'server.host', port: 'server.port', env: 'app.env' } as const
/** The options of single commands. */
const ownOptions = {
  permissions: ['write'], types: ['check'], openapi: ['out'], passwd: ['totp'], audit: ['head'],
  init: ['ts'], docs: ['port'], digest: ['manifest'], verify: ['key'],
} as const
/** The port of `docs` without `--port`. */
const docsPort = '8090'
const serverOptions = ['config', ...Object.keys(overrideKeys)]

class UsageError extends Error {}

/** Reads the arguments after the program's name. `--help` and `--version` take precedence over other valid ones. */
export function parseOptions(args: readonly string[]): Command {
  try {
    return read(args)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException // parseArgs and the functions here throw Errors.
    if (!(error instanceof UsageError) && !code.startsWith('ERR_PARSE_ARGS_')) throw error
    return { word: 'usage', error: rephrase(message) }
  }
}

/** Replaces Node's message about an unknown option, which adds advice about arguments that begin with a dash. */
function rephrase(message: string): string {
  const unknown = /^Unknown option '([^']*)'/.exec(message)?.[1]
  if (unknown === undefined) return message
  return `unknown option ${unknown}${didYouMean(unknown, Object.keys(options).map((name) => `--${name}`))}`
}

function read(args: readonly string[]): Command {
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
  const [word = 'start', ...rest] = positionals
  const serverWord = serverWords.find((known) => known === word)
  if (!words.includes(word)) throw new UsageError(`unknown word ${quoted(word)}${didYouMean(word, words)}`)
  if (values.help) return { word: 'help' }
  if (values.version) return { word: 'version' }
  const own: readonly string[] = Object.hasOwn(ownOptions, word) ? ownOptions[word as keyof typeof ownOptions] : []
  const taken = serverWord === undefined ? own : [...serverOptions, ...own]
  for (const [name, value] of Object.entries(values)) {
    if (!taken.includes(name)) throw new UsageError(`${word} does not take --${name}`)
    if ([value].flat().includes('')) throw new UsageError(`--${name} needs a value`)
  }
  const [path = '', ...more] = wordsWithPath.includes(word) ? rest : ['', ...(word === 'audit' ? [] : rest)]
  if (more[0] !== undefined) throw new UsageError(`${word} takes no more arguments, but got ${quoted(more[0])}`)
  if (serverWord !== undefined) return readServerWord(serverWord, values, path, rest)
  if (word === 'docs') return { word, port: Number(readOverride('port', values.port ?? docsPort)) }
  if (word === 'digest') return { word, manifest: values.manifest === true }
  if (word === 'verify') {
    if (path === '') throw new UsageError('verify needs the manifest to compare with: svc verify MANIFEST')
    return { word, manifest: path, key: values.key }
  }
  if (path === '') throw new UsageError('init needs the folder to make: svc init DIR')
  return { word: 'init', folder: path, typeScript: values.ts === true }
}

type TextOption = 'config' | 'out' | 'head' | keyof typeof overrideKeys
type Values = Readonly<
  Partial<Record<TextOption, string>> & { write?: readonly string[]; check?: boolean; totp?: boolean }
>

function readServerWord(word: ServerWord, values: Values, path: string, rest: readonly string[]): Command {
  const overrides: Record<string, unknown> = {}
  for (const name of ['host', 'port', 'env'] as const) {
    const text = values[name]
    if (text === undefined) continue
    overrides[overrideKeys[name]] = readOverride(name, text)
  }
  const { config, write = [], check = false, totp = false, out, head } = values
  if (word === 'permissions') return { word, write, config, overrides }
  if (word === 'backup') {
    if (path === '') throw new UsageError('backup needs the file to make: svc backup FILE')
    return { word, target: path, config, overrides }
  }
  if (word === 'audit') {
    if (head !== undefined && !/^[0-9a-f]{64}$/i.test(head)) {
      throw new UsageError('--head must be the mac of a record, 64 hexadecimal digits')
    }
    return { word, files: rest, head: head?.toLowerCase(), config, overrides }
  }
  if (word === 'passwd') return { word, totp, config, overrides }
  if (word === 'types') return { word, checks: check, config, overrides }
  return word === 'openapi' ? { word, out, config, overrides } : { word, config, overrides }
}

/** Checks an option by the row of its key. */
function readOverride(name: keyof typeof overrideKeys, text: string): unknown {
  const value = name === 'port' && /^-?[0-9]{1,9}$/.test(text) ? Number(text) : text
  const reading = readValue(configTable[overrideKeys[name]], value)
  if ('problem' in reading) throw new UsageError(`--${name} ${reading.problem}`)
  return reading.value
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
