/**
 * Checks the `pattern` of a field when it is defined: it must not take a time that doubles with each character. Such a
 * pattern reads some text in two ways and comes back to where it was, as `(a+)+` and `(a|\w)*` do.
 *
 * The pattern becomes an automaton with a state for each of its characters (Glushkov's construction); `follow` lists
 * the states that may come next. Two ways to read one text are two walks through it, which are searched for together.
 * Repetitions with numbers count as endless, but for a fixed number of times that holds no repetition itself.
 */

/** A part of a pattern: whether it takes the empty text, repeats, and its first and last states. */
interface Part {
  readonly empty: boolean
  readonly repeats: boolean
  readonly first: readonly number[]
  readonly last: readonly number[]
}

/** More states would take too long to check. */
const mostStates = 100
const nothing: Part = { empty: true, repeats: false, first: [], last: [] }
const assertion = /(?:\^|\$|\\[bB])/y
const groupStart = /\((\?(?:[=!]|<[=!]))?(?:\?(?:<[^>]*>|[a-z-]*:))?/y
const character =
  /\[\^?(?:\\.|[^\]\\])*\]|\\(?:u\{[0-9a-f]+\}|u[0-9a-f]{4}|x[0-9a-f]{2}|[pP]\{[^}]*\}|c[a-z]|[^])|[^|)]/iuy
const quantifier = /(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/y
const backReference = /^\\(?:[1-9]|k)/
const ascii = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code))

/** What a pattern must be, to follow its name in a message; undefined when it can be used. */
export function problemOfPattern(pattern: unknown): string | undefined {
  if (!(pattern instanceof RegExp)) return 'must be a regular expression, such as /^[a-z]+$/'
  if (/[gyv]/.test(pattern.flags)) return 'must have none of the flags g, y and v'
  return new Automaton(pattern).problem
}

class Automaton {
  readonly problem: string | undefined
  readonly #source: string
  readonly #flags: string
  /** Characters that stand for all: those of ASCII and of the pattern, and some others. */
  readonly #samples: readonly string[]
  /** For each state, which of the samples it takes. */
  readonly #takes: (readonly boolean[])[] = []
  readonly #follow: Set<number>[] = []
  #at = 0
  #found: string | undefined

  constructor({ source, flags }: RegExp) {
    this.#source = source
    this.#flags = flags
    this.#samples = [...new Set([...ascii, ...source, 'é', 'Ω', '中', '\u2028'])]
    this.#alternatives()
    if (this.#follow.length > mostStates) this.#found ??= `must have at most ${mostStates} characters and classes`
    else if (this.#canWalkTwice()) this.#found ??= endless
    this.problem = this.#found
  }

  #alternatives(): Part {
    let all = this.#sequence()
    while (this.#source[this.#at] === '|') {
      this.#at += 1
      const next = this.#sequence()
      all = {
        empty: all.empty || next.empty,
        repeats: all.repeats || next.repeats,
        first: [...all.first, ...next.first],
        last: [...all.last, ...next.last],
      }
    }
    return all
  }

  #sequence(): Part {
    let before = nothing
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at] as string)) {
      const next = this.#repeated(this.#atom())
      this.#join(before.last, next.first)
      before = {
        empty: before.empty && next.empty,
        repeats: before.repeats || next.repeats,
        first: before.empty ? [...before.first, ...next.first] : before.first,
        last: next.empty ? [...before.last, ...next.last] : next.last,
      }
    }
    return before
  }

  #atom(): Part {
    if (this.#read(assertion) !== undefined) return nothing
    const group = this.#read(groupStart)
    if (group !== undefined) {
      const inner = this.#alternatives()
      this.#at += 1
      return group[1] === undefined ? inner : nothing
    }
    const text = this.#read(character)?.[0] ?? ''
    if (backReference.test(text)) this.#found ??= 'must have no back-reference such as \\1'
    const state = this.#follow.push(new Set()) - 1
    if (state < mostStates) {
      const single = new RegExp(`^(?:${text})$`, this.#flags)
      this.#takes.push(this.#samples.map((sample) => single.test(sample)))
    }
    return { empty: false, repeats: false, first: [state], last: [state] }
  }

  #repeated(part: Part): Part {
    const found = this.#read(quantifier)
    if (found === undefined) return part
    const [, sign, least = '', comma = '', most = ''] = found
    const empty = part.empty || sign === '*' || sign === '?' || Number(least || 1) === 0
    if (sign === '?' || (sign === undefined && Number(comma === '' ? least : most || 2) <= 1)) return { ...part, empty }
    const isFixed = sign === undefined && comma === ''
    if (isFixed && !part.repeats && !part.empty) return part
    // Where one state follows another already, there are two ways from one to the other.
    const hasTwoWays = part.last.some((last) => part.first.some((first) => this.#follow[last]?.has(first)))
    if (hasTwoWays || (sign === undefined && part.empty)) this.#found ??= endless
    this.#join(part.last, part.first)
    return { ...part, empty, repeats: true }
  }

  #join(from: readonly number[], to: readonly number[]): void {
    for (const state of from) for (const next of to) this.#follow[state]?.add(next)
  }

  #read(what: RegExp): RegExpExecArray | undefined {
    what.lastIndex = this.#at
    const found = what.exec(this.#source)
    if (found === null) return undefined
    this.#at += found[0].length
    return found
  }

  #canWalkTwice(): boolean {
    const states = [...this.#takes.keys()]
    const overlaps = this.#takes.map((one, state) =>
      states.filter((other) => other === state || one.some((takes, sample) => takes && this.#takes[other]?.[sample])),
    )
    return states.some((state) => this.#isAmbiguous(state, overlaps))
  }

  /**
   * Whether some text leads from a state back to it in two ways.
   * @param overlaps for each state, those that take a character that it takes
   */
  #isAmbiguous(start: number, overlaps: readonly (readonly number[])[]): boolean {
    const seen = new Set<number>()
    const pairs: [one: number, other: number, differ: boolean][] = [[start, start, false]]
    for (const [one, other, differ] of pairs) {
      for (const next of this.#follow[one] ?? []) {
        for (const otherNext of overlaps[next] ?? []) {
          const differs = differ || next !== otherNext
          const key = (next * mostStates + otherNext) * 2 + Number(differs)
          if (seen.has(key) || !this.#follow[other]?.has(otherNext)) continue
          if (differs && next === start && otherNext === start) return true
          seen.add(key)
          pairs.push([next, otherNext, differs])
        }
      }
    }
    return false
  }
}

const endless =
  'must not repeat what can be read in two ways: it could take for ever for a long text. Begin each repetition with a '
  + 'character that the rest of it does not take: /^[a-z]+(-[a-z]+)*$/'
