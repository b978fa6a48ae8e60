/**
 * Returns the same text as V8 stores names of properties. A text that was cut out of another one, or put in lower case,
 * is looked up among all of those whenever it is used as a name: half a microsecond.
 */
export function asPropertyName(text: string): string {
  return Object.keys({ [text]: true })[0] as string // There is one.
}
