/** What inputs are made with: small changes of texts, and texts put together of pieces. */
import type { Seeded } from '../support/seeded.ts'

/** Characters that mean something to one parser or another. */
export const odd: readonly string[] = [
  '', '\0', '\n', '\r', '\r\n', '\r\n\r\n', '\t', ' ', '"', "'", '`', '\\', '/', '//', '.', '..', '/../', ':', ';', '=', '&', '?',
  '#', '%', '%00', '%2e', '%2F', '%25', '%ff', '%C3%A9', '+', '-', '--', ',', '|', '{', '}', '{{', '}}', '[', ']', '(', ')', '<', '>',
  '@', '*', '$', '${', '~', '0', '1', '9'.repeat(20), 'e', 'E+1', '\x7f', '\x85', '\xa0', '\xff', '\xc3\xa9', '__proto__', 'constructor',
]

/** As many pieces of a list as `most`, or fewer, one after the other. */
export function pieces(seeded: Seeded, list: readonly string[], most: number): string {
  let text = ''
  for (let left = seeded.integer(most + 1); left > 0; left -= 1) text += seeded.pick(list)
  return text
}

/** A text with a few changes: something put in, taken out, doubled or exchanged, or the end cut off. */
export function changed(seeded: Seeded, text: string, changes: number): string {
  let result = text
  for (let left = changes; left > 0; left -= 1) result = changedOnce(seeded, result)
  return result
}

/** A text in up to `most` parts, cut anywhere. */
export function cutAnywhere(seeded: Seeded, text: string, most: number): string[] {
  const places = Array.from({ length: seeded.integer(most) }, () => seeded.integer(text.length + 1)).sort((a, b) => a - b)
  return [0, ...places].map((from, at) => text.slice(from, places[at]))
}

function changedOnce(seeded: Seeded, text: string): string {
  const at = seeded.integer(text.length + 1)
  const head = text.slice(0, at)
  switch (seeded.integer(6)) {
    case 0:
      return head + seeded.pick(odd) + text.slice(at)
    case 1:
      return head + text.slice(at + 1 + seeded.integer(8))
    case 2:
      return head + String.fromCharCode(seeded.integer(256)) + text.slice(at + 1)
    case 3:
      return head + head.slice(-1 - seeded.integer(20)) + text.slice(at)
    case 4:
      return head + seeded.pick(odd) + text.slice(at + 1)
    default:
      return seeded.integer(4) === 0 ? head : head + text.slice(at, at + 1).replace(/[a-z]/, (letter) => letter.toUpperCase()) + text.slice(at + 1)
  }
}
