/**
 * Reads the JSON files that people write, `svc.json`, route files, `config.json` and `admin.json`, with one wording for
 * what is wrong with them. No message has a part of the text, which may be a secret.
 */
import { readFileSync, statSync } from 'node:fs'
import { createPlaces, readJson, type JsonNode } from './json-map.ts'

/** The content of a file: its text, without the byte order mark, its value, and the places in the text. */
export interface JsonFile {
  readonly text: string
  readonly value: unknown
  readonly root: JsonNode
  /** The line and column of an offset in the text, both from 1. */
  readonly placeOf: ReturnType<typeof createPlaces>
}

/**
 * Reads a file of UTF-8, with a byte order mark or without.
 * @param empty what to write for a file that says nothing: `{} for the defaults`
 * @returns undefined when there is no such file
 * @throws Error that says what is wrong, without the name of the file
 */
export function readJsonFile(path: string, empty: string): JsonFile | undefined {
  const text = readText(path)
  if (text === undefined) return undefined
  if (text.trim() === '') throw new Error(`it is empty: write ${empty}`)
  return { text, ...readJson(text), placeOf: createPlaces(text) }
}

function readText(path: string): string | undefined {
  try {
    if (!statSync(path).isFile()) throw new Error('it is no regular file')
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    if (error instanceof TypeError) throw new Error('it is not UTF-8', { cause: error })
    const { code, message } = error as NodeJS.ErrnoException // what node:fs throws, or the error above
    if (code === 'ENOENT') return undefined
    if (code === undefined) throw error
    const advice = code === 'EACCES' ? '; let the user that the server runs as read it' : ''
    throw new Error(`it cannot be read: ${message}${advice}`, { cause: error })
  }
}
