/**
 * Reads the documents of an installation: the pages, their areas for the navigation, and `llms.txt`.
 *
 * The areas are the lists of `docs/README.md`, then the pages of each folder. Every path that the site serves is in a
 * map made here, from the files that exist: no path of a request is looked up on the disk.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative, sep } from 'node:path'
import { Markdown, textOf, type Section } from './markdown.ts'

/** A page of the site. */
export interface Page {
  /** Its path in the site: `/docs/forms`. */
  readonly path: string
  readonly title: string
  readonly html: string
  readonly sections: readonly Section[]
}

/** A part of the navigation. */
export interface Area {
  readonly title: string
  readonly links: readonly { readonly path: string; readonly title: string; readonly about: string }[]
}

/** The documents. */
export interface Manual {
  readonly pages: readonly Page[]
  /** Every file of the site by its path, `/docs/forms.md`; the value is absolute. */
  readonly files: ReadonlyMap<string, string>
  readonly areas: readonly Area[]
  /** By https://llmstxt.org: links to the Markdown of each page, with a line about it. */
  readonly llms: string
}

const startFile = '/docs/README.md'
const topFiles = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'LICENSE', 'lib/svc.d.ts']
const folders = [['recipes', 'Recipes'], ['decisions', 'Decisions']] as const

/**
 * Reads all documents.
 * @param root the folder of the server
 * @throws Error when the installation has no documents
 */
export function readManual(root: string): Manual {
  const inDocs = readdirSync(join(root, 'docs'), { recursive: true, withFileTypes: true })
  const names = inDocs.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)).sort()
  const top = topFiles.map((name) => join(root, name)).filter((file) => existsSync(file))
  const files = new Map([...top, ...names].map((file) => [`/${relative(root, file).split(sep).join('/')}`, file]))
  const sources = [...files].filter(([path]) => path.endsWith('.md'))
  const pages = sources.map(([path, file]) => readPage(path, readFileSync(file, 'utf8')))
  const areas = areasOf(readFileSync(join(root, startFile), 'utf8'), pages)
  const summary = pages.find(({ path }) => path === '/README')?.sections[0]?.blocks[0] ?? ''
  const lists = areas.map(({ title, links }) => {
    const lines = links.map((link) => `- [${link.title}](${sourceOf(link.path)})${link.about && `: ${link.about}`}\n`)
    return `\n## ${title}\n\n${lines.join('')}`
  })
  return { pages, files, areas, llms: `# svc\n\n> ${oneLine(textOf(summary))}\n${lists.join('')}` }
}

/** Returns the path of a page's Markdown. */
export function sourceOf(path: string): string {
  return path === '/' ? startFile : `${path}.md`
}

function readPage(path: string, text: string): Page {
  const { html, sections } = new Markdown(text, (target) => linkFrom(path, target))
  return { path: pagePath(path), title: sections[0]?.heading ?? path, html, sections }
}

function pagePath(file: string): string {
  return file === startFile ? '/' : file.replace(/\.md$/, '')
}

/** The URL for a link of a page. */
function linkFrom(file: string, target: string): string {
  if (/^(?:https?:|#)/.test(target)) return target
  const [path = '', fragment] = target.split('#')
  return pagePath(posix.join(posix.dirname(file), path)) + (fragment === undefined ? '' : `#${fragment}`)
}

/** The areas: a heading of the start page with a list of links, and what each is about; then the folders. */
function areasOf(start: string, pages: readonly Page[]): Area[] {
  const listed = start.split(/^## /m).slice(1).map((section) => {
    const items = section.matchAll(/^(?:-|\d+\.) \[([^\]]+)\]\(([^)\s]+)\): ((?:.|\n(?= {2}))+)/gm)
    const links = [...items].map(([, title = '', target = '', about = '']) => {
      return { path: linkFrom(startFile, target), title, about: oneLine(about) }
    })
    return { title: section.slice(0, section.indexOf('\n')), links }
  })
  const inFolders = folders.map(([folder, title]) => {
    const own = pages.filter(({ path }) => posix.dirname(path) === `/docs/${folder}`)
    const links = own.map(({ path, title, sections }) => {
      const [sentence = ''] = /^.*?[.:](?=\s|$)/s.exec(textOf(sections[0]?.blocks[0] ?? '')) ?? []
      return { path, title, about: oneLine(sentence).replace(/:$/, '') }
    })
    return { title, links }
  })
  return [...listed, ...inFolders].filter(({ links }) => links.length > 0)
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ')
}
