/**
 * Dead addresses: calls of `url` and `redirect` in modules and views that name no route, or whose parameters are not
 * those of the route. Each would be an error at run time.
 */
import type { Inspection } from '../application/application.ts'
import { didYouMean } from '../base/nearest.ts'
import { realPathOf, relativeTo } from '../files/paths.ts'
import { createPlaces } from '../json/json-map.ts'
import { systemRoutes } from '../panel/table.ts'
import { parsePattern, quote, type Pattern } from '../routing/pattern.ts'
import { codeOfView } from '../views/parse.ts'
import { ViewError } from '../views/template.ts'
import { filesOnDisk } from '../views/view-files.ts'
import { addressCalls, type AddressCall } from './address-calls.ts'

/** Packages and type declarations. */
const notOfApplication = /[\\/]node_modules[\\/]|\.d\.[cm]?ts$/
/** The most unknown names with a suggestion: each is compared with all names, up to 35 ms for 10,000. */
const mostSuggestions = 10

/** Checks the addresses in the files of an application. A file that cannot be read is a problem of other checks. */
export class DeadAddresses {
  readonly #root: string
  readonly #patterns: ReadonlyMap<string, Pattern>
  readonly #knowsAll: boolean
  /** By an unknown name: the end of the message, which many places may share. */
  readonly #suggestions = new Map<string, string>()

  /**
   * @param root `paths.root`, absolute
   * @param hasPanel whether the routes of the admin panel exist
   */
  constructor(root: string, { routes, problems }: Inspection, hasPanel: boolean) {
    this.#root = root
    const patterns = new Map([['svc.live', parsePattern('/svc-live.js')]])
    for (const { name, url, always } of systemRoutes) if (always || hasPanel) patterns.set(name, parsePattern(url))
    for (const { record, pattern } of routes) patterns.set(record.name, pattern)
    this.#patterns = patterns
    this.#knowsAll = problems.length === 0 // A record or a file that cannot be used may have any name.
  }

  /**
   * Checks a module.
   * @param file absolute, without symbolic links
   * @returns a line for each problem, with file, line and column
   */
  inModule(file: string): string[] {
    return notOfApplication.test(file) ? [] : this.#check(file, addressCalls)
  }

  /** The same for a view. One that cannot be parsed has no problems here. */
  inView(file: string): string[] {
    return this.#check(file, (source) =>
      codeOf(source).flatMap(({ text, offset }) =>
        addressCalls(text).map((call) => ({ ...call, offset: offset + call.offset }))))
  }

  #check(file: string, callsOf: (source: string) => readonly AddressCall[]): string[] {
    const source = readSource(this.#root, file)
    const name = relativeTo(this.#root, file) ?? relativeTo(realPathOf(this.#root), file) ?? file
    const placeOf = createPlaces(source)
    return callsOf(source).flatMap((call) => {
      const reasons = this.#reasons(call)
      if (reasons.length === 0) return []
      const { line, column } = placeOf(call.offset)
      const shown = call.callee === 'url' ? `url(${quote(call.route)})` : `redirect({ route: ${quote(call.route)} })`
      return `${name}:${line}:${column}: ${shown}: ${reasons.join('; ')}`
    })
  }

  #reasons({ route, params }: AddressCall): string[] {
    const pattern = this.#patterns.get(route)
    if (pattern === undefined) return this.#knowsAll ? [`no route has that name${this.#suggestion(route)}`] : []
    if (params === undefined) return []
    const { names, text } = pattern
    const unknown = params.filter((name) => !names.includes(name))
    const missing = names.filter((name) => !params.includes(name))
    return [
      ...unknown.map((name) => `the route ${quote(route)} (${text}) has no parameter ${quote(name)}`),
      ...missing.map((name) => `the parameter ${quote(name)} is missing`),
    ]
  }

  #suggestion(route: string): string {
    const known = this.#suggestions.get(route)
    if (known !== undefined || this.#suggestions.size === mostSuggestions) return known ?? ''
    const suggestion = didYouMean(route, this.#patterns.keys(), quote)
    this.#suggestions.set(route, suggestion)
    return suggestion
  }
}

function readSource(root: string, file: string): string {
  try {
    return filesOnDisk.read(root, file).text
  } catch {
    return ''
  }
}

function codeOf(view: string): ReturnType<typeof codeOfView> {
  try {
    return codeOfView(view, '')
  } catch (error) {
    if (error instanceof ViewError) return []
    throw error
  }
}
