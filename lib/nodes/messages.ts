/**
 * What nodes tell each other over the channels of the shared engine, as JSON. What is none of these is passed over: the
 * state in the engine counts, and each node looks at its position every second.
 *
 * Surprise: a message says that there is something to look at, and never what to do: whoever may PUBLISH to the engine must
 * not be an administrator of the servers by that.
 */
import type { Acknowledgement } from './acknowledgements.ts'
import type { Position } from './position.ts'

/** A change was recorded. */
export interface RecordedMessage {
  readonly kind: 'recorded'
  /** The id of the node that carried it out. */
  readonly node: string
  /** Where the state stands now. */
  readonly after: Position
}

/** A message on the channel of all. */
export type Message =
  | RecordedMessage
  | { readonly kind: 'turn-ended' }
  /** The state is not what it was: whoever hears it looks. */
  | { readonly kind: 'look' }
  /** A node has stopped. */
  | { readonly kind: 'left'; readonly node: string; readonly name: string }

/** A message as it is sent. */
export function textOf(message: Message | Acknowledgement): string {
  return JSON.stringify(message)
}

/** Reads a message on the channel of all; undefined: it is none. */
export function messageIn(text: string): Message | undefined {
  const message = parse(text)
  switch (message?.['kind']) {
    case 'turn-ended':
    case 'look':
      return { kind: message['kind'] }
    case 'left':
      return areTexts(message, ['node', 'name']) ? (message as unknown as Message) : undefined // Both were looked at.
    case 'recorded':
      return isRecorded(message) ? (message as unknown as Message) : undefined // As above.
    default:
      return undefined
  }
}

/** Reads a message on the channel of one node; undefined: it is none. */
export function acknowledgementIn(text: string): Acknowledgement | undefined {
  const said = parse(text)
  const isOne = said !== undefined && areTexts(said, ['stamp', 'node', 'name']) && isTexts(said['lines'])
  return isOne ? (said as unknown as Acknowledgement) : undefined // Every member was looked at.
}

type Members = Readonly<Record<string, unknown>>

function isRecorded(message: Members): boolean {
  return typeof message['node'] === 'string' && isPosition(message['after'])
}

function isPosition(value: unknown): boolean {
  return isObject(value) && Number.isSafeInteger(value['seq']) && typeof value['stamp'] === 'string'
}

function areTexts(message: Members, names: readonly string[]): boolean {
  return names.every((name) => typeof message[name] === 'string')
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null
}

function parse(text: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
