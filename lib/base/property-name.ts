/**
 * Returns the text in the internalized form in which V8 stores property names. A substring, or a text converted to
 * lower case, is otherwise looked up among all names on each use as a name: half a microsecond.
 */
export function asPropertyName(text: string): string {
  return Object.keys({ [text]: true })[0] as string // There is exactly one.
}
