/**
 * What a view's text says, as a tree. `parse.ts` makes it of one file; `compile.ts` joins the trees of several.
 */

import type { Expression } from './expression.ts'

export type Node = TextNode | PrintNode | IfNode | EachNode | IncludeNode | YieldNode

export interface TextNode {
  readonly kind: 'text'
  readonly text: string
  /** The line where it begins, from 1; as in all nodes. */
  readonly line: number
}

/** `{{ }}`, `{!! !!}`, `@csrf` and `@resource`. */
export interface PrintNode {
  readonly kind: 'print'
  readonly expression: Expression
  readonly escaped: boolean
  readonly line: number
}

export interface IfNode {
  readonly kind: 'if'
  /** In order; the one without a condition is `@else`. */
  readonly branches: readonly Branch[]
  readonly line: number
}

export interface Branch {
  readonly condition: Expression | undefined
  readonly body: readonly Node[]
}

export interface EachNode {
  readonly kind: 'foreach'
  readonly item: string
  readonly list: Expression
  readonly body: readonly Node[]
  readonly line: number
}

/** `@view 'file'`. */
export interface IncludeNode {
  readonly kind: 'view'
  readonly file: string
  readonly indent: string
  readonly line: number
}

export interface YieldNode {
  readonly kind: 'yield'
  readonly section: string
  readonly indent: string
  readonly line: number
}

export interface Section {
  readonly name: string
  readonly body: readonly Node[]
  readonly line: number
}

/** One file. With a layout, `body` is empty and the text is in `sections`. */
export interface Template {
  readonly body: readonly Node[]
  readonly layout: { readonly file: string; readonly line: number } | undefined
  readonly sections: ReadonlyMap<string, Section>
}
