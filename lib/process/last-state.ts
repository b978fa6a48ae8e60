/**
 * What a process was doing: its memory and its running requests, as text for the log, and as a file from which the next
 * process learns about one that was killed.
 */
import { mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { attempt, readJson } from './optional-file.ts'
import type { RunningRequests } from './running-requests.ts'

/** The state of a process. */
interface ProcessState {
  /** In bytes; 0 if unknown. */
  readonly memory: number
  /** Method and path of running requests. */
  readonly requests: readonly string[]
  /** The number of running requests that are not among them. */
  readonly others: number
}

/** The most requests that a line or the file names. */
const maxNamed = 8
/** The file has always this size, so that one write replaces all of it: a process may be killed at any time. */
const fileBytes = 8192

/** Returns the state of this process. */
export function stateOf(running: RunningRequests): ProcessState {
  const { named, unnamed } = running.read()
  const requests = named.slice(0, maxNamed)
  return { memory: residentBytes(), requests, others: named.length - requests.length + unnamed }
}

/** Returns the running requests as text: `running: GET /a, GET /b and 3 others`. */
function textOfRequests({ requests, others }: Pick<ProcessState, 'requests' | 'others'>): string {
  if (requests.length === 0) return 'no running request'
  const more = others === 0 ? '' : ` and ${others} ${others === 1 ? 'other' : 'others'}`
  return `running: ${requests.join(', ')}${more}`
}

/** Returns a state as text: `512 MiB of memory; running: GET /a`. */
export function textOfState(state: ProcessState): string {
  const memory = state.memory === 0 ? '' : `${Math.round(state.memory / 2 ** 20)} MiB of memory; `
  return memory + textOfRequests(state)
}

/** Returns the path of the file. @param number of the process, if there are several */
export function lastStateFile(cacheFolder: string, number?: number): string {
  return join(cacheFolder, number === undefined ? 'last-state' : `last-state-${number}`)
}

/** Keeps the state of this process in a file. If it cannot be written, there is none, and no error. */
export class LastState {
  #fd: number | undefined
  #written = ''

  /** Removes the file of an earlier process. */
  constructor(file: string) {
    attempt(() => {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      rmSync(file, { force: true })
      this.#fd = openSync(file, 'wx', 0o600)
    })
  }

  /** Writes the state, unless the file has it. */
  write(state: ProcessState): void {
    const rounded = { ...state, memory: Math.round(state.memory / 2 ** 23) * 2 ** 23 }
    const json = JSON.stringify({ pid: process.pid, ...rounded })
    const fd = this.#fd
    if (fd === undefined || json === this.#written) return
    this.#written = json
    attempt(() => writeSync(fd, Buffer.alloc(fileBytes, ' ').fill(json, 0, Buffer.byteLength(json)), 0, fileBytes, 0))
  }
}

/** Returns the last state of a process that has ended, as text; undefined if it is unknown. */
export function readLastState(file: string, pid: number): string | undefined {
  const state = readJson(file)
  if (state?.['pid'] !== pid) return undefined
  const { memory, requests, others } = state
  if (typeof memory !== 'number' || !Array.isArray(requests) || typeof others !== 'number') return undefined
  return textOfState({ memory, requests: requests.map(String), others })
}

/** Removes the file: the process stops cleanly. */
export function removeLastState(file: string): void {
  attempt(() => rmSync(file, { force: true }))
}

/** Node opens a file for it, which fails when no descriptor is free. */
function residentBytes(): number {
  try {
    return process.memoryUsage.rss()
  } catch {
    return 0
  }
}
