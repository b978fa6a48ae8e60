/** The text of a value that is kept or sent as JSON. */
import { reasonOf } from './reason.ts'

/**
 * Returns the JSON of a value, in which a Date is a string and NaN is null.
 * @param refused the beginning of the message
 * @throws TypeError for a value that JSON cannot hold: undefined, a function, a symbol, a bigint, a circular structure
 */
export function jsonText(value: unknown, refused: string): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw new TypeError(`${refused}: ${reasonOf(error)}`, { cause: error })
  }
  if (text !== undefined) return text
  throw new TypeError(`${refused}: it is of type ${typeof value}`)
}
