/**
 * Prints log lines on the console, gathered for one turn of the event loop.
 *
 * A closed console (the reader of a pipe has gone) is no reason to end the server, so its errors are dropped. One whose
 * reader has stopped reading (a stopped journald, for example) must not fill the memory: Node keeps whatever is written
 * to a pipe, so above a limit lines are left out and counted. The file has every line.
 *
 * Surprise: once lines are left out, so are all others until the reader has taken half of what waits. A short line that
 * would still fit is no sign that it reads.
 */

/** Where text is printed: `out` takes the lines of the log, `error` what the log itself cannot hold. */
export interface ConsolePort {
  out(text: string): void
  error(text: string): void
  /** Bytes of `out` that nobody has read yet. */
  readonly waitingBytes: number
}

const batchLength = 64 * 1024

/** The most that waits for a reader, in bytes. */
const maxWaitingBytes = 2 ** 20

/** The console of this process: standard output and standard error. */
export function createProcessConsole(): ConsolePort {
  ignoreConsoleErrors()
  return {
    out: (text) => void process.stdout.write(text),
    error: (text) => {
      if (process.stderr.writableLength + Buffer.byteLength(text) <= maxWaitingBytes) process.stderr.write(text)
    },
    get waitingBytes() {
      return process.stdout.writableLength
    },
  }
}

/** Lets this process live on when its standard streams fail: their reader has gone, or their disk is full. */
export function ignoreConsoleErrors(): void {
  for (const stream of [process.stdout, process.stderr]) {
    if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore)
  }
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
  /** Lines left out since the console was last read. */
  #leftOut = 0
  #lost = 0
  /** While lines are left out: the bytes that may wait when it counts as read again. */
  #resumeBytes = 0

  /** @param port where the lines are printed */
  constructor(port: ConsolePort) {
    this.#port = port
  }

  /** A message for the operator while lines are left out; undefined while all are printed. */
  get problem(): string | undefined {
    if (!this.#isStuck) return undefined
    return `Nobody reads the console: it lacks ${countedLines(this.#leftOut)}. The log file has them`
  }

  /** The number of lines left out since the start. */
  get lost(): number {
    return this.#lost
  }

  get #isStuck(): boolean {
    return this.#leftOut > 0 && this.#port.waitingBytes > this.#resumeBytes
  }

  /** Takes one line with its end. */
  append(line: string): void {
    this.#text += line
    if (this.#text.length >= batchLength) return this.flush()
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#turn)
  }

  /** Prints now what is held. */
  flush(): void {
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    const { waitingBytes } = this.#port
    if (this.#isStuck || waitingBytes + Buffer.byteLength(text) > maxWaitingBytes) {
      if (this.#leftOut === 0) this.#resumeBytes = Math.floor(waitingBytes / 2)
      const lines = text.split('\n').length - 1
      this.#leftOut += lines
      this.#lost += lines
      return
    }
    const note = this.#leftOut === 0 ? '' : `... ${countedLines(this.#leftOut)} left out here: nobody read them\n`
    this.#leftOut = 0
    this.#port.out(note + text)
  }
}

function countedLines(count: number): string {
  return count === 1 ? '1 line' : `${count} lines`
}

function ignore(): void {}
