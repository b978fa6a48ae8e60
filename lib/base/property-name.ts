/**
 * Names of properties that are cut out of a longer text or made of another.
 */

/**
 * The same text as V8 keeps the names of properties. One that was cut out of another text, or put in lower case, is
 * looked up among all of those each time that an object gets it: half a microsecond.
 */
export function asPropertyName(text: string): string {
  return Object.keys({ [text]: true })[0] as string // It has that one.
}
