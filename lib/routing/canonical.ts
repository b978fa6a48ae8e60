/**
 * The one form in which a path and the literals of a pattern are the same text when they mean the same: escapes are
 * undone, but for those of `/` and `%`.
 */
import { decodeText } from './pattern.ts'
import type { Pattern } from './pattern.ts'

/**
 * @param path as sent, without query
 * @returns a segment that is wrongly encoded stays as it is, and is then like no literal
 */
export function canonicalPath(path: string): string {
  if (!path.includes('%')) return path
  return path.split('/').map(canonicalSegment).join('/')
}

/** @param text a literal of a pattern, decoded */
export function canonicalLiteral(text: string): string {
  if (!text.includes('%') && !text.includes('/')) return text
  return text.replaceAll('%', '%25').replaceAll('/', '%2F')
}

/** The path of a pattern that has literals only; undefined for others. */
export function plainPath(pattern: Pattern): string | undefined {
  let path = ''
  for (const segment of pattern.segments) {
    if (segment.kind !== 'literal') return undefined
    path += `/${canonicalLiteral(segment.text)}`
  }
  return path === '' ? '/' : path
}

function canonicalSegment(segment: string): string {
  const text = decodeText(segment)
  return text === undefined ? segment : canonicalLiteral(text)
}
