/**
 * What is read of source files without a parser: lines, comments, exported names, functions and their lengths. It goes by
 * the style of the project: a function ends at the next line that closes a brace at the indent at which it began.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** One TypeScript file. */
export interface Source {
  /** Relative to the scanned folder, with slashes. */
  readonly path: string
  readonly lines: readonly string[]
}

/** A function of more than one line. */
export interface ScannedFunction {
  readonly name: string
  readonly path: string
  /** From 1. */
  readonly line: number
  /** Its lines, without those of functions within it. */
  readonly ownLines: number
}

/** The longest that a line may be, in characters. */
export const maxLineLength = 120

/** Reads every `.ts` file below a folder, in the order of their paths. */
export function readSources(folder: string): Source[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .sort()
    .map((path) => ({
      path: relative('.', path).replaceAll('\\', '/'),
      lines: readFileSync(join(folder, path), 'utf8').replace(/\n$/, '').split('\n'),
    }))
}

/** How many lines are nothing but a comment. */
export function commentLines({ lines }: Source): number {
  return lines.filter((line) => /^\s*(?:\/\/|\/\*|\*)/.test(line)).length
}

/** The numbers of the lines that are too long, from 1. */
export function longLines({ lines }: Source): number[] {
  return lines.flatMap((line, at) => ([...line].length > maxLineLength ? [at + 1] : []))
}

/** The names that a file exports. */
export function exportedNames({ lines }: Source): string[] {
  const text = lines.join('\n')
  const declared = text.matchAll(/^export (?:declare )?(?:default )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm)
  const listed = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names = '']) => names.split(','))
  return [
    ...[...declared].map(([, name = '']) => name),
    ...listed.map((name) => name.trim().replace(/^type /, '').replace(/^\w+ as /, '')).filter((name) => name !== ''),
  ]
}

/** The names that a file exports without a doc comment before them. Of overloads the first has it. */
export function undocumentedExports({ lines }: Source): string[] {
  return lines.flatMap((line, at) => {
    const [, name] = /^export (?:default )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/.exec(line) ?? []
    const before = lines[at - 1] ?? ''
    return name === undefined || before.endsWith('*/') || before.includes(`function ${name}(`) ? [] : [name]
  })
}

/** What opens a function with a name: a declaration, a method, or an arrow that a constant is set to. */
const functionHead = new RegExp(
  [
    String.raw`^\s*(?:export )?(?:default )?(?:async )?function\*? ?(\w*)`,
    String.raw`^\s*(?:(?:static|private|protected|override|readonly|async|get|set) )*\*?(#?\w+|'[\w.]+')(?:<.*>)?\((?:(?!.*=>).*\)(?:: .*)? \{)?$`,
    String.raw`^\s*(?:export )?(?:(?:const|let) |readonly |static )*(#?\w+)\b[^'"(:]*= (?:async )?\([^'"]*=> \{$`,
  ].join('|'),
)
const notFunctions = new Set(['if', 'for', 'while', 'switch', 'catch', 'with', 'return', 'do', 'else'])

/** The functions of a file that have more than one line. */
export function functionsOf({ path, lines }: Source): ScannedFunction[] {
  const found: { name: string; line: number; last: number; nested: number; indent: number }[] = []
  for (const [at, text] of lines.entries()) {
    const head = functionHead.exec(text)
    if (head === null || /^\s*(?:\/\/|\*|\/\*)/.test(text)) continue
    const name = head.slice(1).find((part) => part !== undefined && part !== '') ?? 'default'
    if (notFunctions.has(name)) continue
    const indent = text.search(/\S/)
    if (text.endsWith('(') && !opensBody(lines, at, indent)) continue
    const last = endOf(lines, at, indent)
    if (last > at) found.push({ name, line: at + 1, last: last + 1, nested: 0, indent })
  }
  for (const [at, one] of found.entries()) {
    const parent = found.slice(0, at).reverse().find(({ last, line }) => line < one.line && last >= one.last)
    if (parent !== undefined) parent.nested += one.last - one.line + 1
  }
  return found.map(({ name, line, last, nested }) => ({ name, path, line, ownLines: last - line + 1 - nested }))
}

/** Whether the parenthesis that a line leaves open is that of parameters, which a body follows. */
function opensBody(lines: readonly string[], at: number, indent: number): boolean {
  const closing = lines.find((line, other) => other > at && line.search(/\S/) <= indent && line !== '')
  return closing !== undefined && /^\s*\)(?:: .*)? \{$/.test(closing)
}

/** The end of parameters that are taken apart: `}: Options): void {`. */
const continuesHead = /^\s*\}(?:: | \| |, \w+: |\): ).*\{$/

/** The line that closes what a line opened; the line itself where it is an overload or a type. */
function endOf(lines: readonly string[], at: number, indent: number): number {
  const closing = new RegExp(`^ {${indent}}\\}`)
  const end = lines.findIndex((line, other) => other > at && closing.test(line) && !continuesHead.test(line))
  const next = lines.findIndex((line, other) => other > at && line.trim() !== '' && line.search(/\S/) < indent)
  return end === -1 || (next !== -1 && next < end) ? at : end
}
