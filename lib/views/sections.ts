/**
 * Finds what a view says and no page would show: text beside its sections, or sections that nothing asks for.
 */

import { countLines } from './lines.ts'
import type { Node, Section } from './template.ts'

/**
 * Returns the first thing in a view that would be lost, or undefined. With a layout only sections reach the page, and
 * white space between them; without one nothing yields sections.
 * @param nodes what is outside the sections
 */
export function lostText(
  nodes: readonly Node[],
  hasLayout: boolean,
  sections: ReadonlyMap<string, Section>,
): { line: number; reason: string } | undefined {
  if (!hasLayout) {
    const [first] = sections.values()
    return first === undefined ? undefined : { line: first.line, reason: '@section needs a @layout in the same file' }
  }
  for (const node of nodes) {
    const at = node.kind === 'text' ? node.text.search(/\S/) : 0
    if (at < 0) continue
    const before = 'in a view with a @layout all must be in sections'
    if (node.kind !== 'text') return { line: node.line, reason: `${before}: this would be lost` }
    const shown = JSON.stringify(node.text.slice(at, at + 20).split('\n', 1)[0]?.trimEnd())
    return { line: node.line + countLines(node.text, 0, at), reason: `${before}: the text ${shown} would be lost` }
  }
  return undefined
}
