/**
 * Prints log lines on the console, buffered for one turn of the event loop.
 *
 * A closed console (the reader of a pipe has exited) must not end the server, so its errors are dropped. A console
 * whose reader has stopped reading (a stopped journald, for example) must not exhaust the memory: Node buffers whatever
 * is written to a pipe, so above a limit lines are left out and counted. The file has every line.
 *
 * Surprise: once lines are left out, so are all others until the reader has consumed half of the buffered bytes. That
 * a short line would still fit does not mean that the reader is reading.
 */
import { createJournalForm, isJournal } from './journal.ts'

/** Where text is printed: `out` takes the lines of the log, `error` alerts about the log itself. */
export interface ConsolePort {
  out(text: string): void
  /** Prints one line with its line end. */
  error(line: string): void
  /** Prepares log lines for `out`; undefined: they are printed as they are. */
  readonly form?: ((lines: string) => string) | undefined
  /** Bytes of `out` that have not been read yet. */
  readonly waitingBytes: number
}

const batchLength = 64 * 1024

/** The most unread bytes. */
const maxWaitingBytes = 2 ** 20

/** The console of this process: standard output and standard error. */
export function createProcessConsole(): ConsolePort {
  ignoreConsoleErrors()
  const head = isJournal(2) ? '<3>' : ''
  return {
    out: (text) => void process.stdout.write(text),
    form: isJournal(1) ? createJournalForm() : undefined,
    error: (line) => {
      const text = head + line
      if (process.stderr.writableLength + Buffer.byteLength(text) <= maxWaitingBytes) process.stderr.write(text)
    },
    get waitingBytes() {
      return process.stdout.writableLength
    },
  }
}

/** Keeps this process running when its standard streams fail: their reader has exited, or their disk is full. */
export function ignoreConsoleErrors(): void {
  for (const stream of [process.stdout, process.stderr]) {
    if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore)
  }
}

/** Buffers lines and prints them once per turn. */
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
  /** While lines are left out: printing resumes at this number of unread bytes. */
  #resumeBytes = 0

  /** @param port where the lines are printed */
  constructor(port: ConsolePort) {
    this.#port = port
  }

  /** A message for the operator while lines are left out; undefined while all are printed. */
  get problem(): string | undefined {
    if (!this.#isStuck) return undefined
    return `The console is not being read: left out ${countedLines(this.#leftOut)}. The log file has them`
  }

  /** The number of lines left out since the start. */
  get lost(): number {
    return this.#lost
  }

  get #isStuck(): boolean {
    return this.#leftOut > 0 && this.#port.waitingBytes > this.#resumeBytes
  }

  /** Appends one line with its line end. */
  append(line: string): void {
    this.#text += this.#port.form?.(line) ?? line
    if (this.#text.length >= batchLength) return this.flush()
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#turn)
  }

  /** Prints the buffered lines now. */
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
    const note = this.#leftOut === 0 ? '' : `... ${countedLines(this.#leftOut)} left out: the console was not read\n`
    this.#leftOut = 0
    this.#port.out(note + text)
  }
}

function countedLines(count: number): string {
  return count === 1 ? '1 line' : `${count} lines`
}

function ignore(): void {}
