/**
 * Reads the text of one view into a tree. Text passes through; `{{ }}` and `{!! !!}` stand anywhere, directives
 * (`@if`, `@view`, ...) first on their line, which they take with its line end.
 *
 * Surprise: only the words of the language begin a directive. Any other `@word` is text, so style sheets and addresses
 * need nothing special, and `@@` is a plain `@` everywhere.
 */

import { ViewError } from './errors.ts'
import { ExpressionError, checkSyntax, isDeclarable, namesOf, readEnclosed } from './expression.ts'
import type { Expression } from './expression.ts'
import { countLines } from './lines.ts'
import { lostText } from './sections.ts'
import type { Branch, Node, Section, Template } from './template.ts'

/** How deep blocks may be nested in one file: far more than a person writes, and safe for the engine's own parser. */
const maxDepth = 100

const words = 'if|elseif|else|endif|foreach|endforeach|view|layout|section|endsection|yield|csrf|resource'
const directiveLine = `([ \\t]*)@(${words})(?![\\w$-])([^\\n]*)(?:\\n|$)`
const nextMark = '\\{\\{|\\{!!|@@|\\n'

/**
 * Parses a view.
 * @param file its name in errors
 * @throws ViewError with the line of what is wrong: an expression, a directive, a block that is not closed
 */
export function parse(source: string, file: string): Template {
  return new Parser(source, file).parse()
}

/** A directive whose end has not been read. */
type Block = OpenIf | OpenEach | OpenSection

interface OpenIf {
  readonly kind: 'if'
  readonly line: number
  /** The branches that have ended. */
  readonly branches: Branch[]
  /** That of the branch that is being read; undefined in `@else`. */
  condition: Expression | undefined
  hasElse: boolean
}

interface OpenEach {
  readonly kind: 'foreach'
  readonly line: number
  readonly item: string
  readonly list: Expression
}

interface OpenSection {
  readonly kind: 'section'
  readonly line: number
  readonly name: string
}

interface Open {
  readonly block: Block
  /** Where what follows the block goes. */
  readonly outside: Node[]
}

class Parser {
  readonly #source: string
  readonly #file: string
  readonly #directiveLine = new RegExp(directiveLine, 'y')
  readonly #nextMark = new RegExp(nextMark, 'g')
  readonly #open: Open[] = []
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
    const unclosed = this.#open.at(-1)?.block
    if (unclosed !== undefined) this.#fail(`@${unclosed.kind} has no @end${unclosed.kind}`, unclosed.line)
    const lost = lostText(this.#nodes, this.#layout !== undefined, this.#sections)
    if (lost !== undefined) this.#fail(lost.reason, lost.line)
    return { body: this.#layout === undefined ? this.#nodes : [], layout: this.#layout, sections: this.#sections }
  }

  /** Reads text up to the end of the line, or an expression with what is before it. Returns whether a line ended. */
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
    const enclosed = this.#locate(mark, start, 0, () => readEnclosed(this.#source, start, !escaped))
    if (!enclosed.isEmpty) {
      this.#locate(mark, start, start, () => checkSyntax(enclosed.source))
      const expression = { source: enclosed.source.trim(), line, names: enclosed.names }
      this.#nodes.push({ kind: 'print', expression, escaped, line })
    } else if (enclosed.source.trim() === '') {
      this.#fail(`${mark} has no expression`, line)
    }
    this.#position = enclosed.end
    this.#line += countLines(this.#source, start, enclosed.end)
  }

  /** Reads a line that is a directive. Returns false, and reads nothing, when it is none. */
  #directive(): boolean {
    this.#directiveLine.lastIndex = this.#position
    const found = this.#directiveLine.exec(this.#source)
    if (found === null) return false
    const [whole, indent = '', word = '', rest = ''] = found
    this.#apply(word, rest.trim(), indent)
    this.#position += whole.length
    if (whole.endsWith('\n')) this.#line++
    return true
  }

  #apply(word: string, rest: string, indent: string): void {
    const line = this.#line
    switch (word) {
      case 'if':
        return this.#begin({ kind: 'if', line, branches: [], condition: this.#expression(word, rest), hasElse: false })
      case 'elseif':
        return this.#branch(word, this.#expression(word, rest))
      case 'else':
        this.#nothing(word, rest)
        return this.#branch(word, undefined)
      case 'foreach':
        return this.#foreach(rest)
      case 'section':
        return this.#section(this.#sectionName(word, rest))
      case 'endif':
      case 'endforeach':
      case 'endsection':
        this.#nothing(word, rest)
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
        this.#nothing(word, rest)
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

  #foreach(rest: string): void {
    const found = /^(\S+)\s+in\s+(.+)$/.exec(rest)
    if (found === null) this.#fail(`@foreach must be "@foreach item in expression": it is "@foreach ${rest}"`)
    const [, item = '', list = ''] = found
    if (!isDeclarable(item)) this.#fail(`@foreach needs a name before "in": "${item}" is none, or it is reserved`)
    this.#begin({ kind: 'foreach', line: this.#line, item, list: this.#expression('foreach', list) })
  }

  #section(name: string): void {
    if (this.#open.length > 0) this.#fail(`@section must not stand in a block${this.#stillOpen()}`)
    const first = this.#sections.get(name)
    if (first !== undefined) this.#fail(`there is a section "${name}" already, in line ${first.line}`)
    this.#begin({ kind: 'section', line: this.#line, name })
  }

  #setLayout(file: string): void {
    if (this.#open.length > 0) this.#fail(`@layout must not stand in a block${this.#stillOpen()}`)
    if (this.#layout !== undefined) this.#fail(`there is a @layout already, in line ${this.#layout.line}`)
    this.#layout = { file, line: this.#line }
  }

  #begin(block: Block): void {
    if (this.#open.length === maxDepth) this.#fail(`blocks are nested more than ${maxDepth} deep`)
    this.#open.push({ block, outside: this.#nodes })
    this.#nodes = []
  }

  #branch(word: string, condition: Expression | undefined): void {
    const block = this.#open.at(-1)?.block
    if (block?.kind !== 'if') this.#fail(`@${word} without @if${this.#stillOpen()}`)
    if (block.hasElse) this.#fail(`@${word} after @else: the @if is in line ${block.line}`)
    block.branches.push({ condition: block.condition, body: this.#nodes })
    block.condition = condition
    block.hasElse = condition === undefined
    this.#nodes = []
  }

  #end(word: string): void {
    const open = this.#open.at(-1)
    if (open === undefined || word !== `end${open.block.kind}`) {
      this.#fail(`@${word} without @${word.slice(3)}${this.#stillOpen()}`)
    }
    const { block, outside } = open
    const body = this.#nodes
    this.#open.pop()
    this.#nodes = outside
    if (block.kind === 'section') {
      this.#sections.set(block.name, { name: block.name, body, line: block.line })
    } else if (block.kind === 'foreach') {
      this.#nodes.push({ kind: 'foreach', item: block.item, list: block.list, body, line: block.line })
    } else {
      const branches = [...block.branches, { condition: block.condition, body }]
      this.#nodes.push({ kind: 'if', branches, line: block.line })
    }
  }

  #stillOpen(): string {
    const block = this.#open.at(-1)?.block
    return block === undefined ? '' : `: @${block.kind} in line ${block.line} is open`
  }

  #nothing(word: string, rest: string): void {
    if (rest !== '') this.#fail(`@${word} takes nothing: "${rest}" follows it (plain text begins with @@${word})`)
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
    const names = this.#locate(`@${word}`, this.#position, this.#position, () => {
      checkSyntax(source)
      return namesOf(source)
    })
    return { source, line: this.#line, names }
  }

  /**
   * Runs a check of the expression that begins at `start`; a mistake becomes a ViewError with the mistake's own line.
   * `base` is what the mistake's offset counts from.
   */
  #locate<T>(where: string, start: number, base: number, check: () => T): T {
    try {
      return check()
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error
      const lines = countLines(this.#source, start, base + error.offset)
      const opener = lines === 0 ? where : `${where} of line ${this.#line}`
      return this.#fail(`${opener}: ${error.message}`, this.#line + lines)
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
