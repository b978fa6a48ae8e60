/**
 * What the fuzzer asks of a target: a part of the server, what is thrown at it and what must hold then.
 *
 * Surprise: an input is a list of texts, whatever it is for (bytes are Latin-1 texts). So one shrinker does for all, and
 * an input can be printed.
 */
import { Seeded } from '../support/seeded.ts'

export type Input = readonly string[]

export interface Target {
  readonly name: string
  /** How many of a thousand inputs are its own. */
  readonly share: number
  make(seeded: Seeded): Input
  /** Throws when what must hold does not. It takes any list of texts, as a shrunk one may be. */
  check(input: Input): void
}

/** The generator of one input: it depends on the seed and the place of the input alone, so each can be made again. */
export function seededFor(seed: number, index: number): Seeded {
  return new Seeded(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b))
}

/** How an input is printed: JSON, and of more than 4000 characters only the beginning. */
export function shown(input: Input): string {
  const text = JSON.stringify(input)
  return text.length > 4000 ? `${text.slice(0, 4000)}... (${text.length} characters)` : text
}
