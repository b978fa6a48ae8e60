import type { Seeded } from '../support/seeded.ts'

const characters = ['', '.', '=', '|', '\0', '\n', ' ', '+', '/', '-', '_', 'é', '\ud800', 'A', '0']
const pieces = [...characters, '..', '==', '%2E', '__proto__']

/** Makes an invalid token from valid ones: cut, doubled, combined from two, with a changed character, or random text. */
export function mutate(seeded: Seeded, tokens: readonly string[]): string {
  const token = seeded.pick(tokens)
  const other = seeded.pick(tokens)
  const at = seeded.integer(token.length + 1)
  const to = at + seeded.integer(token.length + 1 - at)
  switch (seeded.integer(10)) {
    case 0:
      return token.slice(0, at)
    case 1:
      return token.slice(0, at) + token.slice(to)
    case 2:
      return token.slice(0, at) + seeded.pick(pieces) + token.slice(to)
    case 3:
      return token.slice(0, at) + seeded.pick(pieces) + token.slice(at)
    case 4:
      return token.slice(0, at) + String.fromCharCode(seeded.integer(128)) + token.slice(at + 1)
    case 5:
      return token.slice(0, at) + other.slice(at)
    case 6:
      return token.slice(0, at) + swapCase(token.slice(at, to)) + token.slice(to)
    case 7:
      return `${token.split('.')[0] ?? ''}.${other.split('.')[1] ?? ''}`
    case 8:
      return seeded.bytes(seeded.integer(40)).toString(seeded.pick(['latin1', 'base64', 'base64url', 'hex']))
    default:
      return seeded.bytes(seeded.integer(30)).toString('base64') + token.slice(token.indexOf('.'))
  }
}

function swapCase(text: string): string {
  return text === text.toLowerCase() ? text.toUpperCase() : text.toLowerCase()
}
