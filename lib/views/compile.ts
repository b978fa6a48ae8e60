/**
 * Turns a view, with its layouts and everything it includes, into the source of one JavaScript function.
 *
 * All files end up in one function, so an included file sees the names of the `@foreach` around it, and a section those
 * around its `@yield`. `svc$at` is the place (file and line) being rendered, for error messages.
 */

import { dirname } from 'node:path'
import type { Expression } from './expression.ts'
import { parse } from './parse.ts'
import { findView } from './resolve.ts'
import type { Asker } from './resolve.ts'
import { ViewError } from './template.ts'
import type { Branch, Node, Section, Template } from './template.ts'
import type { ViewFiles } from './view-files.ts'

/** A compiled view as data that can be written to disk and read back. */
export interface Program {
  /** The statements that append to `svc$out`, which is the page. */
  readonly source: string
  /** The names that the view may take from outside, each with the first place that uses it. */
  readonly names: readonly (readonly [name: string, place: number])[]
  /** The places that `svc$at` is an index of: the index of a file, and a line in it. */
  readonly places: readonly (readonly [file: number, line: number])[]
  /** The files it was compiled from, relative to the root; the view itself comes first. */
  readonly files: readonly string[]
  /** Paths relative to the root that were searched and have no file; a file that appears there changes the view. */
  readonly absent: readonly string[]
}

/** The sections of one view, for the layout around it. */
interface Level {
  readonly file: string
  readonly layout: string
  readonly sections: ReadonlyMap<string, Section>
  readonly used: Set<string>
}

/** The file that a piece of text comes from, and the sections that a `@yield` in it can reach. */
interface Context {
  readonly file: string
  /** From the innermost view outwards. */
  readonly levels: readonly Level[]
  /** The files that are being expanded, to find loops. */
  readonly chain: readonly string[]
}

/**
 * Compiles a view.
 * @param root the application's root, absolute
 * @param file the view, relative to the root
 * @param read returns the text of a file, whose path is relative to the root
 * @param files where other views are searched for; the file system by default
 * @throws ViewError with file and line, for a mistake in any of the files or a missing file
 */
export function compile(root: string, file: string, read: (file: string) => string, files?: ViewFiles): Program {
  return new Compiler(root, read, files).compile(file)
}

class Compiler {
  readonly #root: string
  readonly #read: (file: string) => string
  readonly #files: ViewFiles | undefined
  readonly #templates = new Map<string, Template>()
  readonly #absent = new Set<string>()
  readonly #names = new Map<string, number>()
  readonly #places: (readonly [file: number, line: number])[] = []
  /** The index in #places, by file and line. */
  readonly #placeOf = new Map<string, number>()
  readonly #lines: string[] = []
  #text = ''
  /** The value of `svc$at` at this point of the source, or -1 where it depends on the branch taken. */
  #place = -1
  #depth = 0
  #lists = 0

  constructor(root: string, read: (file: string) => string, files: ViewFiles | undefined) {
    this.#root = root
    this.#read = read
    this.#files = files
  }

  compile(file: string): Program {
    this.#expand(file, [], [])
    this.#flush()
    return {
      source: this.#lines.join('\n'),
      names: [...this.#names],
      places: this.#places,
      files: [...this.#templates.keys()],
      absent: [...this.#absent],
    }
  }

  /** Emits a file within its layouts. `levels` are the sections it can yield when it has no layout of its own. */
  #expand(file: string, levels: readonly Level[], outer: readonly string[]): void {
    const own: Level[] = []
    const chain = [...outer, file]
    let outermost = file
    let template = this.#template(file)
    while (template.layout !== undefined) {
      const layout = this.#find(template.layout.file, { file: outermost, line: template.layout.line }, chain)
      own.push({ file: outermost, layout, sections: template.sections, used: new Set() })
      chain.push(layout)
      outermost = layout
      template = this.#template(layout)
    }
    this.#body(template.body, { file: outermost, levels: own.length > 0 ? own : levels, chain })
    for (const { file: within, layout, sections, used } of own) {
      for (const [name, { line }] of sections) {
        if (used.has(name)) continue
        throw new ViewError(within, line, `section "${name}" would be lost: ${layout} has no @yield ${name}`)
      }
    }
  }

  #find(name: string, asker: Asker, chain: readonly string[]): string {
    const { file, absent } = findView(this.#root, name, [dirname(asker.file), ''], asker, this.#files)
    for (const place of absent) this.#absent.add(place)
    const first = chain.indexOf(file)
    if (first >= 0) {
      const loop = [...chain.slice(first), file].join(' -> ')
      throw new ViewError(asker.file, asker.line, `a view cannot contain itself: ${loop}`)
    }
    return file
  }

  #template(file: string): Template {
    let template = this.#templates.get(file)
    if (template === undefined) {
      template = parse(this.#read(file), file)
      this.#templates.set(file, template)
    }
    return template
  }

  #body(nodes: readonly Node[], context: Context): void {
    for (const node of nodes) {
      switch (node.kind) {
        case 'text':
          this.#text += node.text
          break
        case 'print':
          this.#at(node.expression, context)
          this.#code(`svc$out += ${node.escaped ? 'svc$escape' : 'svc$raw'}(${enclosed(node.expression)});`)
          break
        case 'if':
          this.#if(node.branches, context)
          break
        case 'foreach':
          this.#foreach(node, context)
          break
        case 'view': {
          const file = this.#find(node.file, { file: context.file, line: node.line }, context.chain)
          this.#text += node.indent
          this.#expand(file, context.levels, context.chain)
          break
        }
        case 'yield':
          this.#yield(node, context)
      }
    }
  }

  #if(branches: readonly Branch[], context: Context): void {
    let start = ''
    for (const { condition, body } of branches) {
      const place = condition && this.#use(condition, context)
      this.#code(condition ? `${start}if (svc$at = ${place}, ${enclosed(condition)}) {` : '} else {')
      start = '} else '
      this.#block(body, context)
    }
    this.#code('}')
  }

  #foreach({ item, list, body, line }: Node & { kind: 'foreach' }, context: Context): void {
    const items = `svc$list${this.#lists++}`
    this.#at(list, context)
    this.#code(`const ${items} = svc$each(${enclosed(list)});`)
    if (/^[[{]/.test(item.source)) {
      // Taking an item apart may throw, after the body has moved the place.
      this.#code(`for (const svc$item of ${items}) {`)
      this.#code(`  svc$at = ${this.#use({ ...item, line }, context)}; const ${item.source} = svc$item;`)
    } else this.#code(`for (const ${item.source} of ${items}) {`)
    this.#block(body, context)
    this.#code('}')
  }

  #block(body: readonly Node[], context: Context): void {
    this.#place = -1
    this.#depth++
    this.#body(body, context)
    this.#flush()
    this.#depth--
    this.#place = -1
  }

  /** Emits the section of the outermost view that has one, in the scope of that view; nothing if no view has it. */
  #yield(node: { section: string; indent: string }, context: Context): void {
    const at = context.levels.findLastIndex((level) => level.sections.has(node.section))
    const level = context.levels[at]
    const section = level?.sections.get(node.section)
    if (level === undefined || section === undefined) return
    level.used.add(node.section)
    this.#text += node.indent
    this.#body(section.body, { file: level.file, levels: context.levels.slice(0, at), chain: context.chain })
  }

  /** Records the names of an expression and returns its place. */
  #use(expression: Expression, context: Context): number {
    const key = `${context.file}:${expression.line}`
    let place = this.#placeOf.get(key)
    if (place === undefined) {
      place = this.#places.length
      this.#places.push([[...this.#templates.keys()].indexOf(context.file), expression.line])
      this.#placeOf.set(key, place)
    }
    for (const name of expression.names) if (!this.#names.has(name)) this.#names.set(name, place)
    return place
  }

  #at(expression: Expression, context: Context): void {
    const place = this.#use(expression, context)
    if (place === this.#place) return
    this.#code(`svc$at = ${place};`)
    this.#place = place
  }

  #code(line: string): void {
    this.#flush()
    this.#lines.push('  '.repeat(this.#depth) + line)
  }

  #flush(): void {
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    this.#lines.push(`${'  '.repeat(this.#depth)}svc$out += ${JSON.stringify(text)};`)
  }
}

/** The expression in parentheses. A comment at its end must not swallow the closing one. */
function enclosed({ source }: Expression): string {
  return /[/<>]/.test(source) ? `(${source}\n)` : `(${source})`
}
