import type { Pattern } from '../routing/pattern.ts'

/** Returns the encoded path of a pattern, with a placeholder for each parameter and for the rest. */
export function pathTemplate({ segments }: Pattern, placeholder: (name: string) => string): string {
  const parts = segments.map((segment) => (segment.kind === 'literal' ? segment.encoded : placeholder(segment.name)))
  return `/${parts.join('/')}`
}
