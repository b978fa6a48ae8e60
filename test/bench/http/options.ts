/**
 * The words and options of `npm run bench`.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { workloads } from './workloads.ts'

export interface Options {
  /** Names of workloads; all unless given. */
  readonly workloads: readonly string[]
  /** Names of servers beside bare; undefined: all of a workload. */
  readonly servers: readonly string[] | undefined
  readonly rounds: number
  /** The length of a round. */
  readonly seconds: number
  readonly connections: readonly number[]
  /** Major versions of Node to measure on beside, or instead of, the one that runs; empty: that one alone. */
  readonly nodes: readonly number[]
  /** The folder of another checkout, whose server is measured beside this one; undefined for none. */
  readonly against: string | undefined
  /** A short run for a build: nothing in it fails because of what it measures. */
  readonly short: boolean
  /** Whether the tables go into docs/decisions/performance.md. */
  readonly write: boolean
  readonly help: boolean
}

/** What `--help` prints. */
export const usage = `npm run bench -- [WORKLOAD ...] [OPTION ...]

Workloads: ${workloads.map(({ name }) => name).join(' ')}; all unless named

  --rounds N         rounds that alternate over the servers, 7
  --seconds N        seconds of a round, 1
  --connections N,N  connections at the same time, 1,64,1000
  --servers A,B      these servers alone, beside bare; a name may have a comma and a space: --servers 'svc,svc, session'
  --nodes N,N        these major versions of Node, say 20,24,26; npm installs what is not there.
                     Unless --servers says otherwise bare, svc and fastify alone
  --against FOLDER   beside them the server of another checkout, built where this one is: "svc, other"
  --write            writes the tables into docs/decisions/performance.md; refused beside a process that
                     takes more than 5 % of a core
  --short            bare and svc, json, 64 connections, 3 rounds: for a build, fails for no figure
`

const shortRun = { workloads: ['json'], servers: ['svc'], rounds: 3, connections: [64] }

/**
 * Reads the arguments.
 * @throws Error that says what is wrong
 */
export function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '7' },
      seconds: { type: 'string', default: '1' },
      connections: { type: 'string', default: '1,64,1000' },
      servers: { type: 'string' },
      nodes: { type: 'string', default: '' },
      against: { type: 'string' },
      short: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const known = workloads.map(({ name }) => name)
  for (const name of positionals) {
    if (!known.includes(name)) throw new Error(`There is no workload "${name}": there are ${known.join(', ')}`)
  }
  const { short, write, help, against } = values
  if (against !== undefined && !existsSync(join(against, 'bin/svc.js'))) {
    throw new Error(`--against must be the folder of a checkout: there is no ${join(against, 'bin/svc.js')}`)
  }
  if (against !== undefined && write) throw new Error('--against is for a look: it cannot be put into the page by --write')
  const options: Options = {
    workloads: positionals.length > 0 ? positionals : known,
    servers: values.servers === undefined ? undefined : serverNames(values.servers),
    rounds: wholeNumber('--rounds', values.rounds),
    seconds: wholeNumber('--seconds', values.seconds),
    connections: values.connections.split(',').map((text) => wholeNumber('--connections', text)),
    nodes: values.nodes === '' ? [] : values.nodes.split(',').map((text) => wholeNumber('--nodes', text)),
    against: against === undefined ? undefined : resolve(against),
    short,
    write,
    help,
  }
  return short ? { ...options, ...shortRun } : options
}

/**
 * Reads the names of servers, between which stands a comma without a space.
 * @throws Error for one that no workload has
 */
export function serverNames(text: string): string[] {
  const known = new Set(workloads.flatMap(({ servers }) => servers))
  const names = text.split(/,(?! )/)
  for (const name of names) {
    if (!known.has(name)) throw new Error(`There is no server "${name}": there are ${[...known].join('; ')}`)
  }
  return names
}

function wholeNumber(option: string, text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) {
    throw new Error(`${option} must be a whole number from 1 to 999999: it is "${text}"`)
  }
  return Number(text)
}
