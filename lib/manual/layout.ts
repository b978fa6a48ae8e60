/** The HTML of the site: its frame, a page, the results of a search. It runs one script, which is known by its hash. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { version } from '../base/version.ts'
import { escapeHtml } from '../http/escape-html.ts'
import { sourceOf, type Area, type Page } from './pages.ts'
import type { Hit } from './search.ts'

const style = readFileSync(new URL('style.css', import.meta.url), 'utf8')
const script = `addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input')) return
  event.preventDefault()
  document.getElementById('q').select()
})
document.querySelector('#pages [aria-current]')?.scrollIntoView({ block: 'nearest' })`

/** The Content-Security-Policy of every page: its own style and script, and pictures of the site. */
export const policy = [
  "default-src 'none'",
  `style-src '${hashOf(style)}'`,
  `script-src '${hashOf(script)}'`,
  ...["img-src 'self' data:", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"],
].join('; ')

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}

/** Returns the HTML of a page. */
export function renderPage(page: Page, areas: readonly Area[]): string {
  const parts = page.sections.filter(({ level }) => level === 2)
  const links = parts.map(({ id, heading }) => `<li><a href="#${escapeHtml(id)}">${escapeHtml(heading)}</a></li>`)
  const contents = `<details class="toc"><summary>On this page</summary><ul>${links.join('')}</ul></details>`
  const html = parts.length < 3 ? page.html : page.html.replace('</h1>', () => `</h1>${contents}`)
  const source = `<p class="source"><a href="${sourceOf(page.path)}">This page as Markdown</a></p>`
  return frame({ title: page.title, areas, path: page.path, main: html + source })
}

/** Returns the HTML of the results of a search. */
export function renderHits(query: string, hits: readonly Hit[], areas: readonly Area[]): string {
  const items = hits.map(({ page, id, heading, snippet }) => {
    const where = heading === page.title ? page.title : `${page.title}: ${heading}`
    return `<li><a href="${page.path}#${escapeHtml(id)}">${escapeHtml(where)}</a><br>${snippet}</li>`
  })
  const hint = 'Type words, or paste a message of the server: names, paths and numbers in it do not matter.'
  const nothing = query.trim() === '' ? hint : 'Nothing was found. Try fewer words, or other ones.'
  const list = items.length === 0 ? `<p>${nothing}</p>` : `<ol class="hits">${items.join('')}</ol>`
  return frame({ title: 'Search', areas, query, main: `<h1>Search</h1>${list}` })
}

/** What a page puts into the frame. */
interface Content {
  readonly title: string
  readonly areas: readonly Area[]
  /** HTML. */
  readonly main: string
  /** The path of the page, to mark it in the navigation. */
  readonly path?: string
  /** The text of the search field. */
  readonly query?: string
}

/** Returns the HTML for any content. */
export function frame({ title, areas, main, path, query = '' }: Content): string {
  const groups = areas.map((area, at) => {
    const items = area.links.map((link) => {
      const current = link.path === path ? ' aria-current="page"' : ''
      return `<li><a href="${escapeHtml(link.path)}"${current}>${escapeHtml(link.title)}</a></li>`
    })
    const open = at < 3 || area.links.some((link) => link.path === path) ? ' open' : ''
    return `<details${open}><summary>${escapeHtml(area.title)}</summary><ul>${items.join('')}</ul></details>`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · svc ${version}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<header>
<a class="skip" href="#main">Skip to the text</a>
<a href="/">svc ${version}</a>
<a href="#pages">Pages</a>
<form action="/search" role="search">
<input type="search" id="q" name="q" value="${escapeHtml(query)}" aria-label="Search" aria-keyshortcuts="/"
  placeholder="Search words or a message ( / )">
</form>
</header>
<nav id="pages" aria-label="Pages">
${groups.join('\n')}
</nav>
<main id="main" tabindex="-1">
${main}
</main>
<script>${script}</script>
</body>
</html>
`
}
