/**
 * A view as a tree: `parse.ts` builds it from one file, `compile.ts` joins the trees of several. Also `ViewError`, the
 * error of all views.
 */

import type { Expression, LoopItem } from './expression.ts'

/** A piece of a view. `line` is the line where it begins, from 1; `indent` is the white space before a directive. */
export type Node =
  | { readonly kind: 'text'; readonly line: number; readonly text: string }
  /** `{{ }}`, `{!! !!}`, `@csrf` and `@resource`. */
  | { readonly kind: 'print'; readonly line: number; readonly expression: Expression; readonly escaped: boolean }
  | { readonly kind: 'if'; readonly line: number; readonly branches: readonly Branch[] }
  | {
      readonly kind: 'foreach'
      readonly line: number
      readonly item: LoopItem
      readonly list: Expression
      readonly body: readonly Node[]
    }
  /** `@view 'file'`. */
  | { readonly kind: 'view'; readonly line: number; readonly file: string; readonly indent: string }
  | { readonly kind: 'yield'; readonly line: number; readonly section: string; readonly indent: string }

/** `@if`, `@elseif` or `@else` with its body; `@else` has no condition. */
export interface Branch {
  readonly condition: Expression | undefined
  readonly body: readonly Node[]
}

/** `@section`; `line` is the line of the directive. */
export interface Section {
  readonly line: number
  readonly body: readonly Node[]
}

/** One file. With a layout, `body` is empty and the text is in `sections`, by name. */
export interface Template {
  readonly body: readonly Node[]
  readonly layout: { readonly file: string; readonly line: number } | undefined
  readonly sections: ReadonlyMap<string, Section>
}

/** A view that cannot be found, compiled or rendered. The message begins with the file and the line. */
export class ViewError extends Error {
  override readonly name = 'ViewError'
  /** The view's file relative to the application's root, with `/`; the requested name when it does not exist. */
  readonly file: string
  /** The line, from 1; 0 for the file as a whole. */
  readonly line: number

  /**
   * @param reason the problem, without file and line
   * @param options `cause`: the error that the view's expression threw
   */
  constructor(file: string, line: number, reason: string, options: { cause?: unknown } = {}) {
    super(`${line === 0 ? file : `${file}:${line}`}: ${reason}`, options)
    this.file = file
    this.line = line
  }
}
