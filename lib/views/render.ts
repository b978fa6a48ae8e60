/**
 * Turns a compiled view into a function that renders it, and decides which names the view sees.
 *
 * Names are bound by declarations in the generated function, without `with` and without a proxy. A name that the data
 * or the helpers have is a constant. A name that both lack is left undeclared, so that the engine itself reports it as
 * unknown, and only when it is used; where Node has a global of that name, a declaration that is never reached hides
 * the global. So each set of missing names needs its own function. Most views have one such set; up to 16 are kept.
 */

import { inspect } from 'node:util'
import { compileFunction } from 'node:vm'
import { escapeHtml } from '../http/escape-html.ts'
import type { Program } from './compile.ts'
import { ViewError } from './template.ts'

/** Renders a view with data and helpers; throws ViewError. */
export type Render = (data: Readonly<Record<string, unknown>>, helpers: object) => string

/** The names of the parameters of the generated function. */
const parameters = ['svc$values', 'svc$escape', 'svc$raw', 'svc$each', 'svc$fail']
type Generated = (
  values: readonly unknown[],
  escapeValue: typeof toHtml,
  rawValue: typeof toText,
  eachOf: typeof toItems,
  fail: (error: unknown, place: number) => ViewError,
) => string

/** The ECMAScript globals that a view may use; all other globals, including those of Node, are unknown names. */
export const allowedGlobals: ReadonlySet<string> = new Set(
  `Array BigInt Boolean Date Error Infinity Intl JSON Map Math NaN Number Object RangeError RegExp Set String Symbol
  TypeError decodeURI decodeURIComponent encodeURI encodeURIComponent isFinite isNaN parseFloat parseInt
  undefined`.split(/\s+/),
)

/** The most functions kept for one view, so that data whose keys come from a client cannot exhaust the memory. */
const maxVariants = 16

interface Name {
  readonly name: string
  readonly place: number
  /** Whether every object inherits it; if so, only an own property counts. */
  readonly inherited: boolean
}

/**
 * Returns the function that renders a program.
 * @throws ViewError when the engine refuses the generated source, for example because it is nested too deeply
 */
export function createRender(program: Program): Render {
  const names = program.names.map(([name, place]) => ({ name, place, inherited: name in Object.prototype }))
  const variants = new Map<string, Generated>()
  const variant = (missing: string): Generated => {
    const known = variants.get(missing)
    if (known !== undefined) return known
    const made = generate(program, names, missing)
    const oldest = variants.keys().next()
    if (variants.size === maxVariants && oldest.done !== true) variants.delete(oldest.value)
    variants.set(missing, made)
    return made
  }
  variant('')
  return (data, helpers) => {
    const values: unknown[] = []
    let missing = ''
    const fail = (error: unknown, place: number): ViewError => viewError(program, missing, error, place)
    for (const entry of names) {
      const { name } = entry
      try {
        if (has(data, entry)) values.push(data[name])
        else if (has(helpers, entry)) values.push((helpers as Readonly<Record<string, unknown>>)[name])
        else if (name === 'csrf_token') values.push('')
        else {
          values.push(undefined)
          missing += name in globalThis && !allowedGlobals.has(name) ? `!${name} ` : `${name} `
        }
      } catch (error) {
        throw fail(error, entry.place)
      }
    }
    return variant(missing)(values, toHtml, toText, toItems, fail)
  }
}

/** Whether the object has the name, as its own or from a prototype other than `Object.prototype`. */
function has(object: object, { name, inherited }: Name): boolean {
  return inherited ? Object.hasOwn(object, name) : name in object
}

/** Generates the function for one set of missing names: each followed by a space, globals to hide prefixed with `!`. */
function generate(program: Program, names: readonly Name[], missing: string): Generated {
  const missingNames = new Set(missing.split(' '))
  const hidden = names.filter(({ name }) => missingNames.has(`!${name}`)).map(({ name }) => name)
  const constants = names.flatMap(({ name }, index) =>
    missingNames.has(name) || missingNames.has(`!${name}`) ? [] : [`${name} = svc$values[${index}]`],
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
    // Not `new Function`, which `--disallow-code-generation-from-strings` disables. The parameters are those of
    // `Generated`, and the source returns a string or throws.
    return compileFunction(source, parameters, { filename: file }) as Generated
  } catch (error) {
    throw new ViewError(file, 0, `the engine refuses the compiled view: ${messageOf(error)}`, { cause: error })
  }
}

function viewError(program: Program, missing: string, error: unknown, place: number): ViewError {
  if (error instanceof ViewError) return error
  const [file, line] = program.places[place] ?? [0, 0]
  const unknownName = error instanceof ReferenceError ? nameIn(error.message) : undefined
  const isMissing = unknownName !== undefined && ` ${missing}`.replaceAll('!', '').includes(` ${unknownName} `)
  const reason = isMissing ? `unknown name "${unknownName}"` : messageOf(error)
  return new ViewError(program.files[file] ?? '', line, reason, { cause: error })
}

/** The name in the engine's message about an undeclared or hidden variable. */
function nameIn(message: string): string | undefined {
  const found = /^(\S+) is not defined$|^Cannot access '(\S+)' before initialization$/.exec(message)
  return found?.[1] ?? found?.[2]
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : `${inspect(error)} was thrown`
}

/** `{{ }}`: text for HTML, also within a quoted attribute value. Throws as {@link toText}. */
function toHtml(value: unknown): string {
  if (typeof value === 'string') return escapeHtml(value)
  if (typeof value === 'number') return String(value)
  return escapeHtml(toText(value))
}

/** `{!! !!}`: the text as it is; null and undefined give ''. Throws TypeError for a promise or a value without text. */
function toText(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return ''
  if (value instanceof Promise) {
    value.catch(() => {}) // An unhandled rejection would end the process.
    throw new TypeError('the value is a promise: await it in the action')
  }
  return String(value)
}

/** The items of `@foreach`; null and undefined have none. Throws TypeError for a value that cannot be iterated. */
function toItems(value: unknown): Iterable<unknown> {
  if (value === null || value === undefined) return []
  if (typeof value === 'string') return value
  // Only the presence of the iterator is checked: the loop itself shows whether it works.
  if (typeof value === 'object' && Symbol.iterator in value) return value as Iterable<unknown>
  let found = `a ${typeof value}`
  if (value instanceof Promise) found = 'a promise (await it in the action)'
  else if (typeof value === 'object') found = 'an object that cannot be iterated (try Object.entries)'
  throw new TypeError(`@foreach needs a list: the value is ${found}`)
}
