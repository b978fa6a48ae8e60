// A slow action, for a profile: it compares every text with every other, letter by letter.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { allNotices } from './notices.js'

const maxNotices = 20
const maxText = 100
const shown = 5
const things = ['a red umbrella', 'two bicycles', 'the key of the cellar', 'a long ladder', 'a grey cat', 'three garden chairs']
const places = ['at the north gate', 'behind the library', 'next to the blue door', 'in the old bakery', 'at the bus stop', 'on the second floor']
const wishes = ['Found', 'Lost', 'To lend', 'For sale', 'Wanted', 'To give away', 'Stolen', 'Shared', 'Seen', 'Repaired']
/** Notices of the past, so that there is enough to do on an empty board. */
const archive = things.flatMap((thing) => places.flatMap((place) => wishes.map((wish) => `${wish}: ${thing}, ${place}.`)))

/** GET /alike : the notices that are most alike, of the newest and of an archive. */
export default async ({ view }) => {
  const begun = performance.now()
  const texts = [...allNotices().slice(0, maxNotices).map(({ text }) => text.slice(0, maxText)), ...archive]
  const pairs = await comparePairs(texts)
  const closest = pairs.sort((one, other) => other.likeness - one.likeness).slice(0, shown)
  return view('routes/board/alike.html', { closest, count: pairs.length, tookMs: performance.now() - begun })
}

async function comparePairs(texts) {
  const pairs = []
  for (const [at, one] of texts.entries()) {
    await nextTurn() // Other requests are served in between.
    for (const other of texts.slice(at + 1)) pairs.push({ one, other, likeness: likenessOf(one, other) })
  }
  return pairs
}

/** Returns 1 for equal texts, 0 for those without anything in common. */
function likenessOf(one, other) {
  return 1 - editDistance(one, other) / Math.max(one.length, other.length)
}

/** Returns how many letters must be added, removed or replaced to turn a text into another (Levenshtein, 1965). */
function editDistance(from, to) {
  let above = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = above[column - 1] + (from[row - 1] === to[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, above[column] + 1, current[column - 1] + 1))
    }
    above = current
  }
  return above[to.length]
}
