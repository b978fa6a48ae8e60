/**
 * Prints a line on the console for each request, in `dev`: method, path, status, time, route. The log file does not
 * contain them. Requests for the panel are not printed.
 */
import type { AccessLogPort, EndedRequest } from '../base/ports.ts'
import { ConsoleLines, type ConsolePort } from '../log/console.ts'
import { escapeControls } from '../log/line.ts'

/** The colours of the classes of status, by the first digit, as terminals number them. */
const colourOf: Readonly<Record<string, number>> = { 2: 32, 3: 36, 4: 33, 5: 31 }

/**
 * Returns an access log that also writes to the console.
 * @param colours whether the console supports colours
 */
export function createRequestLines(
  accessLog: AccessLogPort | undefined,
  console: ConsolePort,
  colours: boolean,
): AccessLogPort {
  const lines = new ConsoleLines(console)
  const coloured = (code: number, text: string): string => (colours ? `\x1b[${code}m${text}\x1b[0m` : text)

  function lineOf({ method, path, sentStatus, durationMs, routeName }: EndedRequest): string {
    const status = coloured(colourOf[String(sentStatus).charAt(0)] ?? 0, String(sentStatus))
    const rest = `${durationMs.toFixed(durationMs < 10 ? 1 : 0)} ms ${routeName}`.trimEnd()
    return `${escapeControls(`${method} ${path}`)} ${status} ${coloured(2, escapeControls(rest))}\n`
  }

  return {
    write: (request, endedAtMs) => {
      accessLog?.write(request, endedAtMs)
      if (!request.routeName.startsWith('svc.')) lines.append(lineOf(request))
    },
  }
}
