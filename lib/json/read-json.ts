/**
 * Reads the JSON files that people write, `svc.json`, route files, `config.json` and `admin.json`, with uniform error
 * messages. No message quotes the text, which may contain secrets.
 */
import { readFileSync, statSync } from 'node:fs'
import { createPlaces, readJson, type JsonNode } from './json-map.ts'

/** The content of a file: its text, without the byte order mark, its value, and the positions in the text. */
export interface JsonFile {
  readonly text: string
  readonly value: unknown
  readonly root: JsonNode
  /** The line and column of an offset in the text, both from 1. */
  readonly placeOf: ReturnType<typeof createPlaces>
}

/**
 * Reads a UTF-8 file, with or without a byte order mark.
 * @param empty what to write in an empty file, for the message: `{} for the defaults`
 * @returns undefined when there is no such file
 * @throws Error with the reason, without the name of the file
 */
export function readJsonFile(path: string, empty: string): JsonFile | undefined {
  const text = readTextFile(path)
  if (text === undefined) return undefined
  if (text.trim() === '') throw new Error(`it is empty: write ${empty}`)
  return { text, ...readJson(text), placeOf: createPlaces(text) }
}

/**
 * Reads a UTF-8 file as text, without the byte order mark.
 * @param maxBytes the largest size that is accepted
 * @returns undefined when there is no such file
 * @throws Error with the reason, without the name of the file
 */
export function readTextFile(path: string, maxBytes = Infinity): string | undefined {
  try {
    const stats = statSync(path)
    if (!stats.isFile()) throw new Error('it is not a regular file')
    if (stats.size > maxBytes) throw new Error(`it is longer than ${maxBytes / 1024} KiB`)
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    if (error instanceof TypeError) throw new Error('it is not UTF-8', { cause: error })
    const { code, message } = error as NodeJS.ErrnoException // from node:fs, or the error above
    if (code === 'ENOENT') return undefined
    if (code === undefined) throw error
    const advice = code === 'EACCES' ? '; let the user that the server runs as read it' : ''
    throw new Error(`it cannot be read: ${message}${advice}`, { cause: error })
  }
}
