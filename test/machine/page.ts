/**
 * The commands of docs/install.md and docs/operations.md, so that what is tried on a machine is what the page says, word for word.
 *
 * Surprise: a heading may stand in a block as well, as the comment of a shell script. Such a line would end the section;
 * the pages have none.
 */
import { readFileSync } from 'node:fs'
import { root } from '../support/markdown.ts'

/** The pages, whose headings are different. */
const text = ['install', 'operations'].map((name) => readFileSync(new URL(`docs/${name}.md`, root), 'utf8')).map((page) => `\n${page}`).join('')

/**
 * The blocks of a language below a heading, up to the next heading, in their order.
 * @throws Error when no page has such a heading, or no such block below it
 */
export function blocksBelow(heading: string, language: 'sh' | 'json' | 'ini'): string[] {
  const at = Math.max(...['#', '##', '###'].map((level) => text.indexOf(`\n${level} ${heading}\n`)))
  if (at < 0) throw new Error(`No page has a heading "${heading}"`)
  const section = text.slice(at + 1).split(/\n#{2,3} /, 2)[0] ?? ''
  const blocks = [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].filter(([, of]) => of === language)
  if (blocks.length === 0) throw new Error(`No page has a block of ${language} below "${heading}"`)
  return blocks.map(([, , block = '']) => block)
}
