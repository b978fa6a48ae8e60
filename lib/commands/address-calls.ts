/**
 * Finds the calls in a JavaScript or TypeScript source that name a route by a literal: `url('note', { id })` and
 * `redirect({ route: 'note', params: { id } })`.
 *
 * Errs on the side of too few, since each of them can make `check` fail.
 */
import { isDot, tokensOf, type Token } from './source-tokens.ts'

/** A call that names a route. */
export interface AddressCall {
  readonly callee: 'url' | 'redirect'
  /** The position of the callee's name, in UTF-16 units. */
  readonly offset: number
  readonly route: string
  /** The names of the parameters, empty without any; undefined if they are not a plain object literal. */
  readonly params: readonly string[] | undefined
}

const declaring = new Set(['class', 'const', 'function', 'let', 'var'])
const receivers = new Set(['app', 'c', 'context', 'ctx'])
/** A pattern that takes a module apart. */
const loadedPattern = /\{([^{}]*)\}\s*=\s*(?:require|await\s+import)\s*\(/g

/**
 * Returns the calls of a source, in order. As members, `url` and `redirect` count only of `ctx`, `context`, `c` and
 * `app`, unless the source imports that name. Other calls count unless the source imports the function or declares it,
 * other than as a parameter or in a pattern. Never throws; takes linear time.
 */
export function addressCalls(source: string): AddressCall[] {
  if (!/url|redirect/.test(source)) return []
  const tokens = tokensOf(source)
  const bound = boundNames(source, tokens)
  const calls: AddressCall[] = []
  for (const [at, { text, start }] of tokens.entries()) {
    if ((text !== 'url' && text !== 'redirect') || tokens[at + 1]?.text !== '(') continue
    if (!isOfContext(tokens, at, bound)) continue
    const named = text === 'url' ? readUrl(tokens, at + 2) : readRedirect(tokens, at + 2)
    if (named !== undefined) calls.push({ callee: text, offset: start, ...named })
  }
  return calls
}

/** The names that a source imports, and those that it declares, which hide no receiver. */
function boundNames(source: string, tokens: readonly Token[]): ReadonlySet<string> {
  const bound = new Set([...source.matchAll(loadedPattern)].flatMap(([, names = '']) => names.match(/[\w$]+/g) ?? []))
  let isImport = false
  for (const [at, { text, isName, literal }] of tokens.entries()) {
    const last = tokens[at - 1]
    const before = last?.text === '*' ? tokens[at - 2] : last // `function* url`
    if (isName && declaring.has(before?.text ?? '') && !receivers.has(text)) bound.add(text)
    if (isImport && isName && tokens[at + 1]?.text !== 'as') bound.add(text)
    const isSpecifier = literal !== undefined && (last?.text === 'from' || last?.text === 'import')
    isImport &&= isName || /^[{},*]$/.test(text) || (literal !== undefined && !isSpecifier)
    isImport ||= isName && text === 'import' && !isDot(last)
  }
  return bound
}

function isOfContext(tokens: readonly Token[], at: number, bound: ReadonlySet<string>): boolean {
  if (!isDot(tokens[at - 1])) return !bound.has(tokens[at]?.text ?? '')
  const receiver = tokens[at - 2]?.text === '!' ? at - 3 : at - 2
  const name = tokens[receiver]?.text ?? ''
  return receivers.has(name) && !bound.has(name) && !isDot(tokens[receiver - 1])
}

/** Reads the arguments of `url`, which begin at a token; undefined unless the first is a literal. */
function readUrl(tokens: readonly Token[], at: number): Pick<AddressCall, 'route' | 'params'> | undefined {
  const route = tokens[at]?.literal
  const end = tokens[at + 1]?.text
  if (route === undefined || (end !== ',' && end !== ')')) return undefined
  return { route, params: end === ')' || tokens[at + 2]?.text === ')' ? [] : paramsAt(tokens, at + 2) }
}

/** The same for `redirect` with an object. */
function readRedirect(tokens: readonly Token[], at: number): Pick<AddressCall, 'route' | 'params'> | undefined {
  const members = membersAt(tokens, at)
  const value = members?.get('route') ?? -1
  const route = tokens[value]?.literal
  const end = tokens[value + 1]?.text
  if (route === undefined || (end !== ',' && end !== '}')) return undefined
  const params = members?.get('params')
  return { route, params: params === undefined ? [] : paramsAt(tokens, params) }
}

function paramsAt(tokens: readonly Token[], at: number): readonly string[] | undefined {
  const members = membersAt(tokens, at)
  return members && [...members.keys()]
}

/**
 * Returns the names of the members of an object literal, each with the token where its value begins, or its name if it
 * is shorthand or a method. Undefined if there is anything else, such as a spread, a computed key or an accessor.
 */
function membersAt(tokens: readonly Token[], at: number): ReadonlyMap<string, number> | undefined {
  const close = tokens[at]?.text === '{' ? tokens[at]?.close : undefined
  if (close === undefined || !/^[,)}]$/.test(tokens[close + 1]?.text ?? '')) return undefined
  const members = new Map<string, number>()
  for (let key = at + 1; key < close; key += 1) {
    const { isName = false, text = '', literal } = tokens[key] ?? {}
    const name = isName ? text : literal
    const next = tokens[key + 1]?.text ?? ''
    const isPlain = next === ':' || next === '(' || (isName && (next === ',' || next === '}'))
    if (name === undefined || name === '__proto__' || !isPlain) return undefined // `__proto__` sets the prototype.
    members.set(name, next === ':' ? key + 2 : key)
    while (key < close && tokens[key]?.text !== ',') key = (tokens[key]?.close ?? key) + 1
  }
  return members
}
