/**
 * Parses the text of one view into a tree. Text passes through; `{{ }}` and `{!! !!}` can be anywhere. A directive
 * (`@if`, `@view`, ...) comes first on its line and takes the whole line, with its line end.
 *
 * Only the keywords of the language begin a directive. Any other `@word` is text, and so is a keyword before `=`: style
 * sheets, mail addresses and attributes such as `@error="..."` need no escaping. `@@` is a plain `@` everywhere.
 */

import { reasonOf } from '../base/reason.ts'
import { checkSyntax, namesOf, readEnclosed, readLoop } from './expression.ts'
import type { Expression } from './expression.ts'
import { ViewError } from './template.ts'
import type { Branch, Node, Section, Template } from './template.ts'

const words =
  'if|elseif|else|endif|foreach|endforeach|view|layout|section|endsection|yield|csrf|resource|error|enderror'
const directiveLine = `([ \\t]*)@(${words})(?![\\w$=-])([^\\n]*)(?:\\n|$)`
const nextMark = '\\{\\{|\\{!!|@@|\\n'

/**
 * Parses a view.
 * @param file its name in error messages
 * @throws ViewError with the line of the mistake: an expression, a directive, a block that is not closed
 */
export function parse(source: string, file: string): Template {
  return new Parser(source, file).parse()
}

/** Code in a view, and where it begins: an expression, or all that a directive has after its word. */
export interface ViewCode {
  readonly text: string
  /** In UTF-16 units. */
  readonly offset: number
}

/**
 * Returns the code in a view, in order; takes the parameters of `parse`.
 * @throws ViewError as `parse` does
 */
export function codeOfView(source: string, file: string): readonly ViewCode[] {
  const parser = new Parser(source, file)
  parser.parse()
  return parser.code
}

/** A block directive whose end has not been read. Its node or section is already in the tree. */
interface Block {
  readonly kind: 'if' | 'foreach' | 'section' | 'error'
  readonly line: number
  /** The nodes around it, which continue after its end. */
  readonly outside: Node[]
  /** The branches of an `@if` so far; empty for other blocks. */
  readonly branches: Branch[]
}

class Parser {
  readonly code: ViewCode[] = []
  readonly #source: string
  readonly #file: string
  readonly #directiveLine = new RegExp(directiveLine, 'y')
  readonly #nextMark = new RegExp(nextMark, 'g')
  readonly #open: Block[] = []
  readonly #sections = new Map<string, Section>()
  #layout: Template['layout']
  #nodes: Node[] = []
  #position = 0
  #line = 1

  constructor(source: string, file: string) {
    this.#source = source
    this.#file = file
  }

  parse(): Template {
    if (this.#source.startsWith('\ufeff')) this.#position = 1
    let lineStart = true
    while (this.#position < this.#source.length) {
      lineStart = lineStart && this.#directive() ? true : this.#text()
    }
    const unclosed = this.#open.at(-1)
    if (unclosed !== undefined) this.#fail(`@${unclosed.kind} has no @end${unclosed.kind}`, unclosed.line)
    this.#refuseLostText()
    return { body: this.#layout === undefined ? this.#nodes : [], layout: this.#layout, sections: this.#sections }
  }

  /** Reads text up to the end of the line, or up to and including an expression. Returns whether a line ended. */
  #text(): boolean {
    this.#nextMark.lastIndex = this.#position
    const start = this.#position
    const found = this.#nextMark.exec(this.#source)
    if (found === null) {
      this.#add(this.#source.slice(start))
      this.#position = this.#source.length
      return false
    }
    const mark = found[0]
    const keep = mark === '\n' || mark === '@@' ? 1 : 0
    this.#add(this.#source.slice(start, found.index + keep))
    this.#position = found.index + mark.length
    if (mark === '\n') this.#line++
    else if (mark !== '@@') this.#print(mark)
    return mark === '\n'
  }

  #print(mark: string): void {
    const line = this.#line
    const start = this.#position
    const escaped = mark === '{{'
    const closing = escaped ? '}}' : '!!}'
    const { source, end, isEmpty } = this.#checked(mark, () => readEnclosed(this.#source, start, closing))
    this.code.push({ text: source, offset: start })
    const text = source.trim()
    if (text === '') this.#fail(`${mark} has no expression`)
    if (!isEmpty) {
      this.#nodes.push({ kind: 'print', expression: { source: text, line, names: namesOf(text) }, escaped, line })
    }
    this.#position = end
    this.#line += countLines(this.#source, start, end)
  }

  /** Reads a line that is a directive. Returns false, and reads nothing, for any other line. */
  #directive(): boolean {
    this.#directiveLine.lastIndex = this.#position
    const found = this.#directiveLine.exec(this.#source)
    if (found === null) return false
    const [whole, indent = '', word = '', rest = ''] = found
    this.code.push({ text: rest, offset: this.#position + indent.length + '@'.length + word.length })
    this.#apply(word, rest.trim(), indent)
    this.#position += whole.length
    if (whole.endsWith('\n')) this.#line++
    return true
  }

  #apply(word: string, rest: string, indent: string): void {
    const line = this.#line
    switch (word) {
      case 'if':
        return this.#if(this.#expression(word, rest))
      case 'elseif':
        return this.#branch(word, this.#expression(word, rest))
      case 'else':
        this.#refuseArgument(word, rest)
        return this.#branch(word, undefined)
      case 'foreach':
        return this.#foreach(rest)
      case 'error':
        return this.#error(rest)
      case 'section':
        return this.#section(this.#sectionName(word, rest))
      case 'endif':
      case 'endforeach':
      case 'enderror':
      case 'endsection':
        this.#refuseArgument(word, rest)
        return this.#end(word)
      case 'layout':
        return this.#setLayout(this.#fileName(word, rest))
      case 'view':
        this.#nodes.push({ kind: 'view', file: this.#fileName(word, rest), indent, line })
        return
      case 'yield':
        this.#nodes.push({ kind: 'yield', section: this.#sectionName(word, rest), indent, line })
        return
      case 'csrf':
        this.#refuseArgument(word, rest)
        return this.#helper(indent, { source: 'UCsrfToHtml()', line, names: ['UCsrfToHtml'] })
      default: {
        const { source, names } = this.#expression(word, rest)
        const call = `UResourceToHtml((${source}\n))`
        return this.#helper(indent, { source: call, line, names: ['UResourceToHtml', ...names] })
      }
    }
  }

  #helper(indent: string, expression: Expression): void {
    this.#add(indent)
    this.#nodes.push({ kind: 'print', expression, escaped: false, line: this.#line })
  }

  #if(condition: Expression): void {
    const body: Node[] = []
    const branches: Branch[] = [{ condition, body }]
    this.#begin('if', body, { kind: 'if', line: this.#line, branches }, branches)
  }

  #branch(word: string, condition: Expression | undefined): void {
    const block = this.#open.at(-1)
    if (block?.kind !== 'if') this.#fail(`@${word} without @if${this.#stillOpen()}`)
    if (block.branches.at(-1)?.condition === undefined) {
      this.#fail(`@${word} after @else: the @if is in line ${block.line}`)
    }
    this.#nodes = []
    block.branches.push({ condition, body: this.#nodes })
  }

  #foreach(rest: string): void {
    const found = this.#checked('@foreach needs a name or a pattern before "in"', () => readLoop(rest))
    if (found === undefined) this.#fail(`@foreach must be "@foreach item in expression": it is "@foreach ${rest}"`)
    const list = this.#expression('foreach', found.list)
    const body: Node[] = []
    const node = { kind: 'foreach', line: this.#line, item: found.item, list, body } as const
    this.#begin('foreach', body, node)
  }

  /** `@error 'field'`, `@error 'field', 'form'`: a loop over the first error message of a field, if there is one. */
  #error(rest: string): void {
    const { source, line, names } = this.#expression('error', rest.replace(/^('[^']*'|"[^"]*")\s+(?=['"])/, '$1, '))
    const list = { source: `errorsOf(${source}\n).slice(0, 1)`, line, names: ['errorsOf', ...names] }
    const body: Node[] = []
    this.#begin('error', body, { kind: 'foreach', line, item: { source: 'message', names: [] }, list, body })
  }

  #section(name: string): void {
    if (this.#open.length > 0) this.#fail(`@section must not be inside a block${this.#stillOpen()}`)
    const first = this.#sections.get(name)
    if (first !== undefined) this.#fail(`there is a section "${name}" already, in line ${first.line}`)
    const body: Node[] = []
    this.#sections.set(name, { line: this.#line, body })
    this.#begin('section', body)
  }

  #setLayout(file: string): void {
    if (this.#open.length > 0) this.#fail(`@layout must not be inside a block${this.#stillOpen()}`)
    if (this.#layout !== undefined) this.#fail(`there is a @layout already, in line ${this.#layout.line}`)
    this.#layout = { file, line: this.#line }
  }

  /** Adds the node of a block, if it has one, to the tree, and continues in `body`. */
  #begin(kind: Block['kind'], body: Node[], node?: Node, branches: Branch[] = []): void {
    if (node !== undefined) this.#nodes.push(node)
    this.#open.push({ kind, line: this.#line, outside: this.#nodes, branches })
    this.#nodes = body
  }

  #end(word: string): void {
    const block = this.#open.at(-1)
    if (block === undefined || word !== `end${block.kind}`) {
      this.#fail(`@${word} without @${word.slice(3)}${this.#stillOpen()}`)
    }
    this.#open.pop()
    this.#nodes = block.outside
  }

  #stillOpen(): string {
    const block = this.#open.at(-1)
    return block === undefined ? '' : `: @${block.kind} in line ${block.line} is open`
  }

  #refuseArgument(word: string, rest: string): void {
    if (rest !== '') this.#fail(`@${word} takes no argument: it has "${rest}" (plain text begins with @@${word})`)
  }

  #fileName(word: string, rest: string): string {
    const name = /^(?:'([^'"]+)'|"([^'"]+)")$/.exec(rest)
    const file = name?.[1] ?? name?.[2]
    if (file === undefined) this.#fail(`@${word} needs a file name in quotes: it has ${rest === '' ? 'nothing' : rest}`)
    return file
  }

  #sectionName(word: string, rest: string): string {
    if (/^[\w-]+$/.test(rest)) return rest
    this.#fail(`@${word} needs a name of letters, digits, "_" and "-": it has ${rest === '' ? 'nothing' : rest}`)
  }

  #expression(word: string, source: string): Expression {
    if (source === '') this.#fail(`@${word} needs an expression`)
    this.#checked(`@${word}`, () => checkSyntax(source))
    return { source, line: this.#line, names: namesOf(source) }
  }

  /**
   * Refuses content that no page would show. With a layout, only the sections reach the page; without a layout, no file
   * yields the sections.
   */
  #refuseLostText(): void {
    if (this.#layout === undefined) {
      for (const { line } of this.#sections.values()) this.#fail('@section needs a @layout in the same file', line)
      return
    }
    const before = 'in a view with a @layout all must be in sections'
    for (const node of this.#nodes) {
      if (node.kind !== 'text') this.#fail(`${before}: this would be lost`, node.line)
      const at = node.text.search(/\S/)
      if (at < 0) continue
      const shown = JSON.stringify(node.text.slice(at, at + 20).split('\n', 1)[0]?.trimEnd())
      this.#fail(`${before}: the text ${shown} would be lost`, node.line + countLines(node.text, 0, at))
    }
  }

  /** Checks an expression; turns a mistake into a ViewError with the line where the expression begins. */
  #checked<T>(where: string, check: () => T): T {
    try {
      return check()
    } catch (error) {
      return this.#fail(`${where}: ${reasonOf(error)}`)
    }
  }

  #add(text: string): void {
    if (text === '') return
    const last = this.#nodes.at(-1)
    if (last?.kind === 'text') {
      this.#nodes[this.#nodes.length - 1] = { kind: 'text', text: last.text + text, line: last.line }
    } else {
      this.#nodes.push({ kind: 'text', text, line: this.#line })
    }
  }

  #fail(reason: string, line: number = this.#line): never {
    throw new ViewError(this.#file, line, reason)
  }
}

/**
 * The number of line feeds from `start` up to `end`, exclusive. Only that part of the text is scanned: slicing the text
 * would make a file of one long line take quadratic time.
 */
function countLines(text: string, start: number, end: number): number {
  let lines = 0
  for (let at = start; at < end; at++) if (text.charCodeAt(at) === 0x0a) lines++
  return lines
}
