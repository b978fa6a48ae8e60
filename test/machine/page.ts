/**
 * The commands of docs/operations.md, so that what is tried on a machine is what the page says, word for word.
 *
 * Surprise: a heading may stand in a block as well, as the comment of a shell script. Such a line would end the section;
 * the page has none.
 */
import { readFileSync } from 'node:fs'
import { root } from '../support/markdown.ts'

const text = readFileSync(new URL('docs/operations.md', root), 'utf8')

/**
 * The blocks of a language below a heading, up to the next heading, in their order.
 * @throws Error when the page has no such heading, or no such block below it
 */
export function blocksBelow(heading: string, language: 'sh' | 'json'): string[] {
  const at = Math.max(text.indexOf(`\n### ${heading}\n`), text.indexOf(`\n## ${heading}\n`))
  if (at < 0) throw new Error(`docs/operations.md has no heading "${heading}"`)
  const section = text.slice(at + 1).split(/\n#{2,3} /, 2)[0] ?? ''
  const blocks = [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].filter(([, of]) => of === language)
  if (blocks.length === 0) throw new Error(`docs/operations.md has no block of ${language} below "${heading}"`)
  return blocks.map(([, , block = '']) => block)
}
