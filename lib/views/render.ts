/**
 * Makes a compiled view a function, and gives it its names.
 *
 * Surprise: what a view may name is settled by declarations of the generated function, with neither `with` nor a proxy.
 * A name that data or helpers have is a constant. One that they lack is left undeclared, so that the engine itself
 * finds it unknown, and only when it is used; where Node has a global of that name, a declaration that is never reached
 * hides it. So a function belongs to one set of lacking names. Most views have one such set; a few are kept.
 */

import { inspect } from 'node:util'
import { parameters } from './compile.ts'
import type { Program } from './compile.ts'
import { functionFrom } from './engine.ts'
import { ViewError } from './errors.ts'
import { toHtml, toItems, toText } from './values.ts'

/** Renders with data and helpers; throws ViewError. */
export type Render = (data: Readonly<Record<string, unknown>>, helpers: object) => string

type Generated = (
  values: readonly unknown[],
  escapeValue: typeof toHtml,
  rawValue: typeof toText,
  eachOf: typeof toItems,
  fail: (error: unknown, place: number) => ViewError,
) => string

/** The globals of ECMAScript that a view may use; all others, Node's included, are unknown names. */
export const allowedGlobals: ReadonlySet<string> = new Set(
  `Array BigInt Boolean Date Error Infinity Intl JSON Map Math NaN Number Object RangeError RegExp Set String Symbol
  TypeError decodeURI decodeURIComponent encodeURI encodeURIComponent isFinite isNaN parseFloat parseInt
  undefined`.split(/\s+/),
)

/** Functions kept for one view. Data whose keys come from a client must not make more and more of them. */
const maxVariants = 16

interface Name {
  readonly name: string
  readonly place: number
  /** Whether every object has it, so that only an object's own property counts. */
  readonly inherited: boolean
}

/**
 * Returns the function that renders a program.
 * @throws ViewError when the engine refuses the generated source, for nesting too deep say
 */
export function createRender(program: Program): Render {
  const names = program.names.map(([name, place]) => ({ name, place, inherited: name in Object.prototype }))
  const variants = new Map<string, Generated>()
  const variant = (lacking: string): Generated => {
    const known = variants.get(lacking)
    if (known !== undefined) return known
    const made = generate(program, names, lacking)
    const oldest = variants.keys().next()
    if (variants.size === maxVariants && oldest.done !== true) variants.delete(oldest.value)
    variants.set(lacking, made)
    return made
  }
  variant('')
  return (data, helpers) => {
    const values: unknown[] = []
    let lacking = ''
    const fail = (error: unknown, place: number): ViewError => viewError(program, lacking, error, place)
    for (const entry of names) {
      const { name } = entry
      try {
        if (has(data, entry)) values.push(data[name])
        else if (has(helpers, entry)) values.push((helpers as Readonly<Record<string, unknown>>)[name])
        else if (name === 'csrf_token') values.push('')
        else {
          values.push(undefined)
          lacking += name in globalThis && !allowedGlobals.has(name) ? `!${name} ` : `${name} `
        }
      } catch (error) {
        throw fail(error, entry.place)
      }
    }
    return variant(lacking)(values, toHtml, toText, toItems, fail)
  }
}

/** Whether the object has the name, itself or from a prototype of its own. */
function has(object: object, { name, inherited }: Name): boolean {
  return inherited ? Object.hasOwn(object, name) : name in object
}

/** Makes the function for one set of lacking names: each followed by a space, those to hide with `!` before. */
function generate(program: Program, names: readonly Name[], lacking: string): Generated {
  const lacks = new Set(lacking.split(' '))
  const hidden = names.filter(({ name }) => lacks.has(`!${name}`)).map(({ name }) => name)
  const constants = names.flatMap(({ name }, index) =>
    lacks.has(name) || lacks.has(`!${name}`) ? [] : [`${name} = svc$values[${index}]`],
  )
  const source = [
    `'use strict';`,
    ...(constants.length > 0 ? [`const ${constants.join(', ')};`] : []),
    `let svc$out = '', svc$at = 0;`,
    'try {',
    program.source,
    'return svc$out;',
    '} catch (svc$error) {',
    'throw svc$fail(svc$error, svc$at);',
    '}',
    ...(hidden.length > 0 ? [`let ${hidden.join(', ')};`] : []),
  ].join('\n')
  const file = program.files[0] ?? ''
  try {
    // The parameters are those of `Generated`, and the source returns a string or throws.
    return functionFrom(source, parameters, file) as Generated
  } catch (error) {
    throw new ViewError(file, 0, `the engine refuses the compiled view: ${reasonOf(error)}`, { cause: error })
  }
}

function viewError(program: Program, lacking: string, error: unknown, place: number): ViewError {
  if (error instanceof ViewError) return error
  const [file, line] = program.places[place] ?? [0, 0]
  const unknownName = error instanceof ReferenceError ? nameIn(error.message) : undefined
  const isLacking = unknownName !== undefined && ` ${lacking}`.replaceAll('!', '').includes(` ${unknownName} `)
  const reason = isLacking ? `unknown name "${unknownName}"` : reasonOf(error)
  return new ViewError(program.files[file] ?? '', line, reason, { cause: error })
}

/** The name that the engine's message for an undeclared or a hidden variable tells. */
function nameIn(message: string): string | undefined {
  const found = /^(\S+) is not defined$|^Cannot access '(\S+)' before initialization$/.exec(message)
  return found?.[1] ?? found?.[2]
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : `${inspect(error)} was thrown`
}
