/** Log lines as tests look at them. */

/** A line without the id of its request, which stands at the end of what requests cause from WARN up. */
export function withoutRequestId(line: string): string {
  return line.replace(/ \[[A-Za-z0-9_.-]{8,128}\]$/, '')
}

/** The lines of a log that complain, but for those about a slow machine. */
export function complaintsIn(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => /\[(?:WARN|ERROR|FATAL) *\]/.test(line) && !line.includes('[metrics] the event loop was held up'))
}
