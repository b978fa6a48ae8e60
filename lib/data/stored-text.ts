/**
 * Names and events as text of SQLite, which is UTF-8: it has no lone surrogates, and some Nodes read a text only up to
 * its first U+0000. Such a text is stored as JSON behind a mark.
 */
import { isJsonLine } from '../base/json-text.ts'

/** Begins a stored text that is JSON of the real one. No JSON begins with it. */
const mark = '\u0001'

/** Returns a text as it is stored: never empty, and different for different texts. */
export function toStored(text: string): string {
  const isPlain = text !== '' && !text.startsWith(mark) && !/[\0\p{Surrogate}]/u.test(text)
  return isPlain ? text : mark + JSON.stringify(text)
}

/** Reverses {@link toStored} for an event. Returns undefined if it is damaged: an event is JSON on one line. */
export function eventFrom(stored: string): string | undefined {
  const text = stored.startsWith(mark) ? textIn(stored.slice(mark.length)) : stored
  return text !== undefined && isJsonLine(text) ? text : undefined
}

function textIn(json: string): string | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
