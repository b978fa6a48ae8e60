/**
 * Searches the sections of the documents. A message that a page quotes, with `...` for what varies, is found by the
 * whole message. Other words count by how rare they are and where they are: title, heading, text.
 */
import { escapeHtml } from '../http/escape-html.ts'
import { textOf } from './markdown.ts'
import type { Page } from './pages.ts'

/** A section that was found. */
export interface Hit {
  readonly page: Page
  readonly id: string
  readonly heading: string
  /** HTML: a part of its text, with the words in `<mark>`. */
  readonly snippet: string
}

const maxQueryLength = 1000
const maxWords = 40
const maxHits = 25
const snippetLength = 260
const minMessageLetters = 8
/** What a quoted message counts; words count at most some hundred together. */
const messageWorth = 1000
/** The share of the words, by their weight, that a section must have. */
const leastShare = 0.6
/** Pages that tell how something came about count half. */
const history = /^\/(?:CHANGELOG|docs\/decisions\/)/

/** Creates the index. The function that it returns gives the best sections for a query, best first. */
export function createSearch(pages: readonly Page[]): (query: string) => Hit[] {
  const entries = pages.flatMap(entriesOf)
  return (given) => {
    const query = spaced(given.slice(0, maxQueryLength)).toLowerCase()
    const names = [...new Set(query.match(/\w[\w.-]*\w|\w/g))].slice(0, maxWords)
    const words = names.flatMap((name) => {
      const found = new Set(entries.filter(({ all }) => findWord(all, name) >= 0))
      return found.size === 0 ? [] : [{ name, found, weight: Math.log(1 + entries.length / found.size) }]
    })
    const weigh = (has: (word: (typeof words)[number]) => boolean): number =>
      words.reduce((total, word) => total + (has(word) ? word.weight : 0), 0)
    const least = Math.max(Number.MIN_VALUE, leastShare * weigh(() => true))
    const ranked = entries.flatMap((entry) => {
      const quoted = entry.blocks.map(({ messages }) => Math.max(0, ...messages.map((parts) => worth(parts, query))))
      const inAll = weigh(({ found }) => found.has(entry))
      if (inAll < least && Math.max(...quoted) <= 0) return []
      const inText = (text: string): number => weigh(({ name }) => findWord(text.toLowerCase(), name) >= 0)
      const scores = entry.blocks.map(({ text }, at) => inText(text) + (quoted[at] ?? 0))
      const best = Math.max(0, ...scores)
      const inHeading = inText(entry.heading) * (entry.isTitle ? 8 : 4)
      const score = (best + inAll + inHeading) / (history.test(entry.page.path) ? 2 : 1)
      return [{ ...entry, score, text: entry.blocks[scores.indexOf(best)]?.text ?? '' }]
    })
    const hits = ranked.sort((a, b) => b.score - a.score).slice(0, maxHits)
    return hits.map(({ page, id, heading, text }) => ({ page, id, heading, snippet: snippetOf(text, names) }))
  }
}

interface Entry extends Omit<Hit, 'snippet'> {
  readonly isTitle: boolean
  /** Each message is the list of its parts, between what varies. */
  readonly blocks: readonly { readonly text: string; readonly messages: readonly (readonly string[])[] }[]
  /** Heading and text, in lower case. */
  readonly all: string
}

function entriesOf(page: Page): Entry[] {
  return page.sections.map(({ id, heading, level, blocks: parts }) => {
    const blocks = parts.map((html) => ({ text: spaced(textOf(html)), messages: messagesOf(html) }))
    const all = [heading, ...blocks.map(({ text }) => text)].join('\n').toLowerCase()
    return { page, id, heading, isTitle: level === 1, blocks, all }
  })
}

/** The messages that a block quotes: code of several words. */
function messagesOf(html: string): string[][] {
  if (html.startsWith('<pre')) return []
  const quotes = [...html.matchAll(/<code>(.*?)<\/code>/gs)].map(([, code = '']) => spaced(textOf(code)).toLowerCase())
  const messages = quotes.filter((text) => /\S \S/.test(text) && text.replace(/\W/g, '').length >= minMessageLetters)
  return messages.map((text) => text.split('...').map((part) => part.trim()))
}

/** 0 unless the query has all parts of a message, in their order; more for a longer one. */
function worth(parts: readonly string[], query: string): number {
  let at = 0
  for (const part of parts) {
    const start = query.indexOf(part, at)
    if (start < 0) return 0
    at = start + part.length
  }
  return messageWorth + parts.join('').length
}

/** Returns where a word begins; one of one or two letters as a whole; -1 if nowhere. Both are in lower case. */
function findWord(text: string, word: string, from = 0): number {
  const isLetter = (at: number): boolean => /\w/.test(text[at] ?? '')
  for (let at = text.indexOf(word, from); at >= 0; at = text.indexOf(word, at + 1)) {
    if (!isLetter(at - 1) && (word.length > 2 || !isLetter(at + word.length))) return at
  }
  return -1
}

/** Returns the text around the first of the words, as HTML in which they are marked. */
function snippetOf(text: string, words: readonly string[]): string {
  const longestFirst = [...words].sort((a, b) => b.length - a.length)
  const next = (within: string, from: number): { readonly at: number; readonly length: number } | undefined =>
    longestFirst
      .map((word) => ({ at: findWord(within, word, from), length: word.length }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at - b.at)[0]
  const first = next(text.toLowerCase(), 0)?.at ?? 0
  const start = Math.max(0, text.lastIndexOf(' ', first - snippetLength / 4))
  const part = text.slice(start, start + snippetLength)
  let html = start > 0 ? '... ' : ''
  let from = 0
  for (let hit = next(part.toLowerCase(), 0); hit !== undefined; hit = next(part.toLowerCase(), from)) {
    const end = hit.at + hit.length
    html += `${escapeHtml(part.slice(from, hit.at))}<mark>${escapeHtml(part.slice(hit.at, end))}</mark>`
    from = end
  }
  return `${html}${escapeHtml(part.slice(from))}${start + snippetLength < text.length ? ' ...' : ''}`
}

function spaced(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
