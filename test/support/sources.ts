/** The source files of the server: everything that `lib/cli/main.ts` imports, directly or indirectly. */
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { root } from './markdown.ts'

/** A file of `lib/`. */
export interface Source {
  /** Relative to `lib/`. */
  readonly file: string
  readonly text: string
  /** The files whose values it imports, relative to `lib/`. Types do not count. */
  readonly imports: readonly string[]
}

const specifiers = /(?:^(?:import|export) (?!type)[^'"]*?from |\bimport\()'(\.{1,2}\/[^']+)'/gm

/** The files of the server. */
export function readSources(): Source[] {
  const sources: Source[] = []
  const files = new Set(['cli/main.ts'])
  for (const file of files) {
    const text = readFileSync(new URL(`lib/${file}`, root), 'utf8')
    const imports = [...text.matchAll(specifiers)].map(([, path = '']) => posix.join(posix.dirname(file), path))
    for (const target of imports) files.add(target)
    sources.push({ file, text, imports })
  }
  return sources
}

/** The room that a file is in: its folder in `lib/` or, directly in `lib/`, the file itself. */
export function roomOf(file: string): string {
  return file.split('/')[0]?.replace(/\.ts$/, '') ?? ''
}
