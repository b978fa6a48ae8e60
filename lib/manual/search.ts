/**
 * Searches the sections of the documents. A message that a page quotes, with `...` for what varies, is found by the
 * whole message. Other words count by how rare they are and where they are: title, heading, text. The words of a row
 * or list item of the start page count for the sections that it links to.
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
/** Pages about how the server came about, how it is built and how it is judged count half. */
const background = /^\/(?:CHANGELOG|CONTRIBUTING|docs\/(?:decisions\/|(?:architecture|asvs|audit|records|tested)$))/
/** Words of a question that say nothing about its subject. */
const fillers = /^(?:an?|and|are|can|do(?:es)?|for|from|how|i[fnst]?|my|o[fnr]|the|to|what|when|where|with|you)$/

/** Creates the index. The function that it returns gives the best sections for a query, best first. */
export function createSearch(pages: readonly Page[]): (query: string) => Hit[] {
  const start = pages.find(({ path }) => path === '/')?.sections.flatMap(({ blocks }) => blocks) ?? []
  const entries = pages.flatMap((page) => entriesOf(page, start))
  return (given) => {
    const query = spaced(given.slice(0, maxQueryLength)).toLowerCase()
    const names = namesIn(query)
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
      const inHeading = inText(entry.heading) * (entry.isTitle ? 8 : 4) + inText(entry.questions) * 3
      const score = (best + inAll + inHeading) / (background.test(entry.page.path) ? 2 : 1)
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
  /** The text of the blocks of the start page that link to the section. */
  readonly questions: string
  /** Heading, text and questions, in lower case. */
  readonly all: string
}

/** @param start the blocks of the start page */
function entriesOf(page: Page, start: readonly string[]): Entry[] {
  return page.sections.map(({ id, heading, level, blocks: parts }) => {
    const isTitle = level === 1
    const blocks = parts.map((html) => ({ text: spaced(textOf(html)), messages: messagesOf(html) }))
    const targets = [`${page.path}#${id}`, ...(isTitle ? [page.path] : [])].map((target) => `href="${target}"`)
    const asking = start.filter((html) => targets.some((target) => html.includes(target)))
    const questions = asking.map(textOf).join('\n')
    const all = [heading, questions, ...blocks.map(({ text }) => text)].join('\n').toLowerCase()
    return { page, id, heading, isTitle, blocks, questions, all }
  })
}

/** Returns the words to search: without fillers if there are others, and a plural as its singular. */
function namesIn(query: string): string[] {
  const all = query.match(/\w[\w.-]*\w|\w/g) ?? []
  const subjects = all.filter((word) => !fillers.test(word))
  const names = (subjects.length > 0 ? subjects : all).map((word) => word.replace(/(?<=\w{3}[^\Wsu])s$/, ''))
  return [...new Set(names)].slice(0, maxWords)
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
