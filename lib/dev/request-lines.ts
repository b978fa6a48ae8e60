/**
 * A line on the console for each request, in `dev`: method, path, status, time, route. The log file has none of them.
 * Requests for the panel have none.
 */
import type { AccessLogPort, EndedRequest } from '../base/ports.ts'
import { ConsoleLines, type ConsolePort } from '../log/console.ts'
import { escapeControls } from '../log/line.ts'

/** Joins the console with an access log, which gets its lines as before. */
export interface RequestLines extends AccessLogPort {
  /** Prints the lines that wait for the end of this turn of the event loop. */
  flush(): void
}

/** The colours of the classes of status, by the first digit, as terminals number them. */
const colourOf: Readonly<Record<string, number>> = { 2: 32, 3: 36, 4: 33, 5: 31 }

/**
 * Makes the lines.
 * @param colours whether the console shows colours
 */
export function createRequestLines(
  accessLog: AccessLogPort | undefined,
  console: ConsolePort,
  colours: boolean,
): RequestLines {
  const lines = new ConsoleLines(console, () => {}) // The general log says that nobody reads the console.
  const coloured = (code: number, text: string): string => (colours ? `\x1b[${code}m${text}\x1b[0m` : text)

  function lineOf({ method, path, sentStatus, durationMs, routeName }: EndedRequest): string {
    const status = coloured(colourOf[String(sentStatus).charAt(0)] ?? 0, String(sentStatus))
    const time = coloured(2, `${durationMs < 10 ? durationMs.toFixed(1) : durationMs.toFixed(0)} ms`)
    const route = routeName === '' ? '' : ` ${coloured(2, escapeControls(routeName))}`
    return `${escapeControls(method)} ${escapeControls(path)} ${status} ${time}${route}\n`
  }

  return {
    write: (request, endedAtMs) => {
      accessLog?.write(request, endedAtMs)
      if (!request.routeName.startsWith('svc.')) lines.append(lineOf(request))
    },
    flush: () => lines.flush(),
  }
}
