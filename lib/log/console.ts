/**
 * Prints log lines on the console, gathered for one turn of the event loop.
 *
 * A console that is gone (the reader of a pipe has left) is no reason to end the server, so its errors are dropped. One
 * whose reader stands still (a stopped journald, say) must not fill the memory: Node takes whatever is written to a
 * pipe and keeps it, so past a bound lines are left out and counted. The file has every line.
 */

/** Where text is printed: `out` for the lines of the log, `error` for what the log itself cannot hold. */
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
  for (const stream of [process.stdout, process.stderr]) {
    if (!stream.listeners('error').includes(ignoreConsoleError)) stream.on('error', ignoreConsoleError)
  }
  return {
    out: (text) => void process.stdout.write(text),
    error: (text) => {
      if (process.stderr.writableLength + text.length <= maxWaitingBytes) process.stderr.write(text)
    },
    get waitingBytes() {
      return process.stdout.writableLength
    },
  }
}

/** Gathers lines and prints them once per turn. */
export class ConsoleLines {
  readonly #port: ConsolePort
  readonly #onStill: () => void
  readonly #turn = (): void => {
    this.#scheduled = false
    this.flush()
  }
  #text = ''
  #scheduled = false
  /** Lines left out since the console was last read. */
  #leftOut = 0

  /** @param onStill called when lines begin to be left out */
  constructor(port: ConsolePort, onStill: () => void) {
    this.#port = port
    this.#onStill = onStill
  }

  /** What the operator should know: that lines are being left out, and how many. Undefined while all are printed. */
  get problem(): string | undefined {
    if (this.#leftOut === 0) return undefined
    return `Nobody reads the console: it lacks ${countedLines(this.#leftOut)}. The log file has them`
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
    if (this.#port.waitingBytes + Buffer.byteLength(text) > maxWaitingBytes) return this.#leaveOut(text)
    const note = this.#leftOut === 0 ? '' : `... ${countedLines(this.#leftOut)} left out here: nobody read them\n`
    this.#leftOut = 0
    this.#port.out(note + text)
  }

  #leaveOut(text: string): void {
    const isFirst = this.#leftOut === 0
    this.#leftOut += text.split('\n').length - 1
    if (isFirst) this.#onStill()
  }

  #schedule(): void {
    this.#scheduled = true
    setImmediate(this.#turn)
  }
}

function countedLines(count: number): string {
  return count === 1 ? '1 line' : `${count} lines`
}

function ignoreConsoleError(): void {}
