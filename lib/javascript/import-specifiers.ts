/**
 * Finds what a JavaScript or TypeScript source imports: `import`, `export from`, `import('...')` and `require('...')`,
 * where the specifier is a literal.
 *
 * Surprise: it finds too much rather than too little. `import type` counts, and in a source that names `createRequire`,
 * so does the literal that any call begins with. Escapes in a specifier are not decoded.
 */
import { tokensBeforeError } from './lexer.ts'
import type { Token } from './lexer.ts'

/** What is imported, as written but for its quotes, and where its literal begins, in UTF-16 units. */
export interface ImportSpecifier {
  readonly specifier: string
  readonly offset: number
}

/** The literals that `source` imports, in order, with repeated ones. In a source that cannot be read, those before. */
export function importSpecifiers(source: string): ImportSpecifier[] {
  const found: ImportSpecifier[] = []
  const anyCall = source.includes('createRequire')
  let beforeLast: Token | undefined
  let last: Token | undefined
  for (const token of tokensBeforeError(source)) {
    const specifier = literal(token)
    if (specifier !== undefined && isImport(beforeLast, last, anyCall)) found.push({ specifier, offset: token.start })
    beforeLast = last
    last = token
  }
  return found
}

/** The text between the marks of a string, or of a template without expressions. */
function literal({ kind, text }: Token): string | undefined {
  const isWhole = kind === 'string' || (kind === 'template' && /^`.*`$/s.test(text))
  return isWhole ? text.slice(1, -1) : undefined
}

/** Whether a literal after these two tokens is imported. */
function isImport(beforeLast: Token | undefined, last: Token | undefined, anyCall: boolean): boolean {
  if (last?.text === 'import' || last?.text === 'from') return true
  if (last?.text !== '(' || beforeLast === undefined) return false
  return beforeLast.text === 'import' || beforeLast.text === 'require' || (anyCall && beforeLast.kind === 'name')
}
