/**
 * Any text of JavaScript in UTF-8, without loss: halves of surrogate pairs, which UTF-8 cannot hold, too.
 */

/** Begins a text that UTF-8 cannot hold, or that begins with this; the rest is the text as JSON. */
const escaped = '\uffff'

/** A text that UTF-8 holds without loss, another one for each. */
export function encoded(text: string): string {
  return text.startsWith(escaped) || /\p{Surrogate}/u.test(text) ? escaped + JSON.stringify(text) : text
}

/** The text that was encoded; undefined for what no text becomes. */
export function decoded(text: string): string | undefined {
  if (!text.startsWith(escaped)) return text
  try {
    const value: unknown = JSON.parse(text.slice(escaped.length))
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
