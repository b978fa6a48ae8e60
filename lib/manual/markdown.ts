/**
 * Renders the Markdown of `docs/` as HTML: headings, paragraphs, lists, tables, fenced code, code, links, pictures and
 * emphasis. Anything else is text, HTML too, which is escaped.
 *
 * Surprise: no other syntax is supported. A test compares the words of every page with those of its HTML, and finds
 * syntax that is left over.
 */
import { escapeHtml } from '../http/escape-html.ts'

/** A heading, and the text up to the next one. */
export interface Section {
  /** The fragment that leads to it, by GitHub's rule. */
  readonly id: string
  /** 1 to 6. */
  readonly level: number
  readonly heading: string
  /** The HTML of each paragraph, list item, table row and code block. */
  readonly blocks: string[]
}

const listItem = /^(-|\d+\.) +/
/** What ends a paragraph. Another number than 1 may begin a line of one. */
const blockStart = /^(?:$|- |1\. |```|#{1,6} |\|)/
const references: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }

/** Renders one page, and keeps its sections. */
export class Markdown {
  readonly html: string
  readonly sections: Section[] = []
  readonly #link: (target: string) => string

  /** @param link returns the URL for the target of a link or a picture */
  constructor(text: string, link: (target: string) => string) {
    this.#link = link
    this.html = this.#blocks(text.split('\n'), false)
  }

  /** @param isTight paragraphs are items of a list without blank lines */
  #blocks(lines: readonly string[], isTight: boolean): string {
    let html = ''
    for (let at = 0; at < lines.length; ) {
      const line = lines[at] ?? ''
      const take = (isPart: (next: string, index: number) => boolean): string[] => {
        const end = lines.findIndex((next, index) => index > at && !isPart(next, index))
        const part = lines.slice(at, end < 0 ? undefined : end)
        at += part.length
        return part
      }
      if (line.startsWith('```')) {
        const code = take((next) => next !== '```').slice(1)
        at += 1
        html += this.#keep(`<pre tabindex="0"><code>${escapeHtml(code.join('\n'))}</code></pre>`)
      } else if (line.startsWith('|')) html += this.#table(take((next) => next.startsWith('|')))
      else if (/^#{1,6} /.test(line)) html += this.#heading(take(() => false).join(''))
      else if (listItem.test(line)) {
        const isItem = (next: string): boolean => /^ {2}/.test(next) || listItem.test(next)
        html += this.#list(take((next, index) => isItem(next === '' ? (lines[index + 1] ?? '') : next)))
      } else if (line === '' || /^<!--.*-->$/.test(line)) at += 1
      else {
        const text = this.#keep(this.#inline(take((next) => !blockStart.test(next)).join('\n')))
        html += isTight ? text : `<p>${text}</p>`
      }
      html += '\n'
    }
    return html
  }

  #heading(line: string): string {
    const level = line.indexOf(' ')
    const html = this.#inline(line.slice(level + 1))
    const heading = textOf(html)
    const base = heading.toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-')
    let id = base
    for (let count = 1; this.sections.some((section) => section.id === id); count += 1) id = `${base}-${count}`
    this.sections.push({ id, level, heading, blocks: [] })
    return `<h${level} id="${escapeHtml(id)}">${html}</h${level}>`
  }

  #list(lines: readonly string[]): string {
    const items: string[][] = []
    for (const line of lines) {
      const [marker] = listItem.exec(line) ?? ['']
      if (marker !== '') items.push([line.slice(marker.length)])
      else items.at(-1)?.push(line.replace(/^ {2,3}/, ''))
    }
    const tag = lines[0]?.startsWith('-') === true ? 'ul' : 'ol'
    const isTight = !lines.includes('')
    return `<${tag}>${items.map((item) => `<li>${this.#blocks(item, isTight).trim()}</li>`).join('')}</${tag}>`
  }

  #table([head = '', , ...rows]: readonly string[]): string {
    const cells = (row: string): string[] =>
      row.slice(1, -1).split(/(?<!\\)\|/).map((cell) => this.#inline(cell.trim().replaceAll('\\|', '|')))
    const heads = cells(head).map((cell) => (cell === '' ? '<td></td>' : `<th scope="col">${cell}</th>`))
    const body = rows.map((row) => this.#keep(`<tr>${cells(row).map((cell) => `<td>${cell}</td>`).join('')}</tr>`))
    const table = `<table><thead><tr>${heads.join('')}</tr></thead><tbody>${body.join('\n')}</tbody></table>`
    return heads.length < 3 ? table : `<div class="wide" tabindex="0">${table}</div>`
  }

  #inline(text: string): string {
    let html = ''
    let from = 0
    for (let at = nextMark(text, 0); at >= 0; at = nextMark(text, at)) {
      const span = spanAt(text, at)
      if (span === undefined) {
        at += runAt(text, at).length
        continue
      }
      html += escapeHtml(text.slice(from, at)) + this.#span(span)
      at = from = span.end
    }
    return html + escapeHtml(text.slice(from))
  }

  #span({ kind, text, target = '' }: Span): string {
    if (kind === 'code') return `<code>${breakable(escapeHtml(text.replace(/^ (.*) $/s, '$1')))}</code>`
    if (kind === 'strong' || kind === 'em') return `<${kind}>${this.#inline(text)}</${kind}>`
    const url = escapeHtml(this.#link(target))
    if (kind === 'picture') return `<img src="${url}" alt="${escapeHtml(text)}">`
    return `<a href="${url}">${this.#inline(text)}</a>`
  }

  #keep(html: string): string {
    this.sections.at(-1)?.blocks.push(html)
    return html
  }
}

/** A piece of text with a meaning. */
interface Span {
  readonly kind: 'code' | 'link' | 'picture' | 'strong' | 'em'
  readonly text: string
  /** Of a link or a picture. */
  readonly target?: string
  /** Where the text behind it begins. */
  readonly end: number
}

/** Allows line breaks inside a long name, behind its dots, slashes and underscores, and between members of JSON. */
function breakable(html: string): string {
  return html.replace(/(?<=\w)[./_](?=[A-Za-z])|,(?=&quot;)/g, '$&<wbr>')
}

/** Returns where the next span may begin; -1 if nowhere. */
function nextMark(text: string, from: number): number {
  const at = text.slice(from).search(/[`*[]|!\[/)
  return at < 0 ? -1 : from + at
}

/** Returns the run of equal characters at a place. */
function runAt(text: string, at: number): string {
  let end = at + 1
  while (text[end] === text[at]) end += 1
  return text.slice(at, end)
}

/** Returns the span that begins at a place, if one does. */
function spanAt(text: string, at: number): Span | undefined {
  const run = runAt(text, at)
  if (text[at] === '`') {
    const end = endOf(text, at + run.length, run)
    return end < 0 ? undefined : { kind: 'code', text: text.slice(at + run.length, end), end: end + run.length }
  }
  if (text[at] === '*') {
    const marks = run.slice(0, 2)
    const start = at + marks.length
    const end = endOf(text, start, marks)
    if (end <= start || /\s/.test(text[start] ?? '')) return undefined
    return { kind: marks === '*' ? 'em' : 'strong', text: text.slice(start, end), end: end + marks.length }
  }
  const start = at + (text[at] === '!' ? 2 : 1)
  const label = endOf(text, start, ']')
  const target = /^\]\(([^()\s]+)\)/.exec(label < 0 ? '' : text.slice(label))
  if (target === null) return undefined
  const kind = text[at] === '!' ? 'picture' : 'link'
  return { kind, text: text.slice(start, label), target: target[1] ?? '', end: label + target[0].length }
}

/** The longest span, so that marks without an end take no long search. */
const maxSpan = 400

/** Returns where the mark that ends a span is, outside code and inner brackets; -1 if nowhere near. */
function endOf(text: string, from: number, mark: string): number {
  const limit = Math.min(text.length, from + maxSpan)
  let depth = 0
  for (let at = from; at < limit; ) {
    const run = runAt(text, at)
    if (depth === 0 && run.startsWith(mark) && (mark[0] !== '`' || run === mark)) return at
    const inner = run[0] === '`' && mark[0] !== '`' ? endOf(text, at + run.length, run) : -1
    if (inner >= 0) at = inner + run.length
    else if (mark === ']' && (run[0] === '[' || run[0] === ']')) {
      depth += run[0] === '[' ? 1 : -1
      at += 1
    } else at += run.length
  }
  return -1
}

/** Returns the text of a piece of HTML that this file made. */
export function textOf(html: string): string {
  const text = html.replaceAll('</td>', ' ').replaceAll('</th>', ' ').split('<').map(afterTag).join('')
  return text.replace(/&([a-z]+|#39);/g, (_, name: string) => references[name] ?? '').trim()
}

/** @param part what follows a `<`; the first one follows none */
function afterTag(part: string, at: number): string {
  return at === 0 ? part : part.slice(part.indexOf('>') + 1)
}
