/**
 * Reads the command line: the command, and the options before or behind it. It prints and throws nothing: wrong usage
 * is a result too, with a message that names the wrong part.
 */
import { parseArgs } from 'node:util'
import { didYouMean } from '../base/nearest.ts'
import { readValue } from '../base/value.ts'
import { configTable } from '../config/table.ts'
import type { Config } from '../config/table.ts'

/** The options of the commands that read the configuration. */
export interface CommandOptions {
  /** `--config` as given; undefined: the usual places are searched. */
  readonly config: string | undefined
  /** `--host`, `--port` and `--env`, checked. */
  readonly overrides: Partial<Pick<Config, 'server.host' | 'server.port' | 'app.env'>>
}

/** The command that was given, or wrong usage. */
export type Command =
  | ({ readonly word: Exclude<ServerWord, 'permissions'> } & CommandOptions)
  | ({ readonly word: 'permissions'; readonly write: readonly string[] } & CommandOptions)
  | { readonly word: 'init'; readonly folder: string; readonly typeScript: boolean }
  | { readonly word: 'help' | 'version' }
  /** Wrong usage, exit status 2: `error` says what is wrong. */
  | { readonly word: 'usage'; readonly error: string }

type ServerWord = 'start' | 'check' | 'routes' | 'passwd' | 'permissions'
type Values = ReadonlyMap<ValueOption, string>
type ValueOption = keyof typeof valueOptions

/** The output of `--help`. */
export const helpText = `Usage: svc [start] [options]   runs the server
       svc check [options]     checks configuration, routes, middleware, actions
       svc routes [options]    prints the route table
       svc init DIR [--ts]     makes a new application in an empty folder;
                               with --ts in TypeScript
       svc passwd [options]    sets the admin's name and password in the file
       svc permissions [options] [--write DIR ...]
                               prints a systemd drop-in that runs the server
                               under Node's permission model (24 and later);
                               DIR: a folder that the application writes to
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

const serverWords: readonly ServerWord[] = ['start', 'check', 'routes', 'passwd', 'permissions']
const words: readonly string[] = [...serverWords, 'init']
const valueOptions = { config: 'FILE', host: 'HOST', port: 'PORT', env: 'ENV' } as const
const overrideKeys = { host: 'server.host', port: 'server.port', env: 'app.env' } as const
const optionNames = [...Object.keys(valueOptions), 'write', 'ts', 'help', 'version'].map((name) => `--${name}`)

class UsageError extends Error {}

/** Reads the arguments behind the program's name. `--help` and `--version` win over everything else that is valid. */
export function parseOptions(args: readonly string[]): Command {
  try {
    return read(args)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    return { word: 'usage', error: error.message }
  }
}

function read(args: readonly string[]): Command {
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      config: { type: 'string' },
      host: { type: 'string' },
      port: { type: 'string' },
      write: { type: 'string' },
      env: { type: 'string' },
      ts: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'v' },
    },
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const positionals: string[] = []
  const values = new Map<ValueOption, string>()
  const write: string[] = []
  let asked: 'help' | 'version' | undefined
  let typeScript = false
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    if (isValueOption(token.name)) {
      if (values.has(token.name)) throw new UsageError(`${token.rawName} is given twice`)
      values.set(token.name, valueOf(token, valueOptions[token.name]))
    } else if (token.name === 'write') {
      write.push(valueOf(token, 'DIR'))
    } else if (token.name === 'help' || token.name === 'version' || token.name === 'ts') {
      if (token.value !== undefined) {
        throw new UsageError(`${token.rawName} takes no value: it is ${quoted(token.value)}`)
      }
      if (token.name === 'ts') typeScript = true
      else asked ??= token.name
    } else {
      throw new UsageError(`unknown option ${token.rawName}${didYouMean(token.rawName, optionNames)}`)
    }
  }
  const [word = 'start', ...rest] = positionals
  if (!words.includes(word)) throw new UsageError(`unknown word ${quoted(word)}${didYouMean(word, words)}`)
  if (asked !== undefined) return { word: asked }
  const serverWord = serverWords.find((known) => known === word)
  if (write.length > 0 && serverWord !== 'permissions') {
    throw new UsageError(`--write is an option of permissions: ${word} does not take it`)
  }
  if (serverWord === undefined) return readInit(rest, values, typeScript)
  if (typeScript) throw new UsageError(`--ts is an option of init: ${serverWord} does not take it`)
  return readServerWord(serverWord, rest, values, write)
}

function readInit([folder = '', ...rest]: readonly string[], values: Values, typeScript: boolean): Command {
  if (folder === '') throw new UsageError('init needs the folder to make: svc init DIR')
  refuseMore('init', rest)
  for (const name of values.keys()) throw new UsageError(`init takes no option but --ts, and got --${name}`)
  return { word: 'init', folder, typeScript }
}

function readServerWord(
  word: ServerWord,
  rest: readonly string[],
  values: Values,
  write: readonly string[],
): Command {
  refuseMore(word, rest)
  const overrides: Record<string, unknown> = {}
  for (const [name, text] of values) {
    if (name === 'config') continue
    const key = overrideKeys[name]
    const value = name === 'port' && /^-?[0-9]{1,9}$/.test(text) ? Number(text) : text
    const reading = readValue(configTable[key], value)
    if ('problem' in reading) throw new UsageError(`--${name} ${reading.problem}`)
    overrides[key] = reading.value
  }
  const options = { config: values.get('config'), overrides }
  return word === 'permissions' ? { word, write, ...options } : { word, ...options }
}

function refuseMore(word: string, [next]: readonly string[]): void {
  if (next !== undefined) throw new UsageError(`${word} takes no more arguments, but got ${quoted(next)}`)
}

function valueOf(
  token: { rawName: string; value?: string | undefined; inlineValue?: boolean | undefined },
  example: string,
): string {
  const { rawName, value, inlineValue } = token
  if (value === undefined || value === '' || (!inlineValue && value.startsWith('-'))) {
    const instead = value === undefined || value === '' ? '' : `, but got ${quoted(value)}`
    throw new UsageError(`${rawName} needs a value${instead}: ${rawName} ${example}`)
  }
  return value
}

function isValueOption(name: string): name is ValueOption {
  return Object.hasOwn(valueOptions, name)
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
