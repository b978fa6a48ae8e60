/** Log lines as tests look at them. */

/** A line without the id of its request, which stands at the end of what requests cause from WARN up. */
export function withoutRequestId(line: string): string {
  return line.replace(/ \[[A-Za-z0-9_.-]{8,128}\]$/, '')
}
