/** What the general and the access log have in common. */
export interface WrittenLog {
  /** Takes lines that another process of this server put together, each with its end. */
  take(lines: string): void
  /** Goes on with the file that is at the path now, after logrotate moved the old one away. */
  reopen(): void
  /** Writes now what is held for the end of this turn. Call it before the process exits. */
  flush(): void
  /** Flushes and closes. What is written afterwards is counted as lost. */
  close(): void
  /** The lines that are on disk. */
  readonly written: number
  /** The lines that could not be written. */
  readonly lost: number
  /** Why the file cannot be written now, or undefined when it can. */
  readonly problem: string | undefined
}
