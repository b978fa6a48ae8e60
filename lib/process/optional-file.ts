/**
 * Files that help the operator and that the server works without, such as the mark of a run: what cannot be read or
 * written is no error.
 */
import { readFileSync } from 'node:fs'
import { isObject } from '../base/object.ts'

/** Runs something that may fail. Returns whether it succeeded. */
export function attempt(work: () => void): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}

/** Returns the JSON object in a file; undefined when there is none. */
export function readJson(file: string): Readonly<Record<string, unknown>> | undefined {
  let value: unknown
  attempt(() => (value = JSON.parse(readFileSync(file, 'utf8'))))
  return isObject(value) ? value : undefined
}
