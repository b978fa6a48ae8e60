/**
 * How messages show a value from outside: as JSON, so that it has no control character, and shortened.
 */

const longest = 120

/** Returns a value as JSON text of at most about 120 characters. */
export function quote(value: unknown): string {
  const text = typeof value === 'string' && value.length > longest ? `${value.slice(0, longest)}...` : value
  const json = String(JSON.stringify(text))
  return json.length > 2 * longest ? `${json.slice(0, longest)}...` : json
}
