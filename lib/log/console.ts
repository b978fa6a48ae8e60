/**
 * Prints log lines on the console, gathered for one turn of the event loop.
 *
 * Surprise: a console that is gone (the reader of a pipe has left) is no reason to end the server, so its errors are
 * dropped: the file has every line.
 */

/** Where text is printed: `out` for the lines of the log, `error` for what the log itself cannot hold. */
export interface ConsolePort {
  out(text: string): void
  error(text: string): void
}

const batchLength = 64 * 1024

/** The console of this process: standard output and standard error. */
export function createProcessConsole(): ConsolePort {
  for (const stream of [process.stdout, process.stderr]) {
    if (!stream.listeners('error').includes(ignoreConsoleError)) stream.on('error', ignoreConsoleError)
  }
  return { out: (text) => void process.stdout.write(text), error: (text) => void process.stderr.write(text) }
}

/** Gathers lines and prints them once per turn. */
export class ConsoleLines {
  readonly #port: ConsolePort
  readonly #turn = (): void => {
    this.#scheduled = false
    this.flush()
  }
  #text = ''
  #scheduled = false

  constructor(port: ConsolePort) {
    this.#port = port
  }

  /** Takes one line with its end. */
  append(line: string): void {
    this.#text += line
    if (this.#text.length >= batchLength) this.flush()
    else if (!this.#scheduled) this.#schedule()
  }

  /** Prints now what is held. */
  flush(): void {
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    this.#port.out(text)
  }

  #schedule(): void {
    this.#scheduled = true
    setImmediate(this.#turn)
  }
}

function ignoreConsoleError(): void {}
