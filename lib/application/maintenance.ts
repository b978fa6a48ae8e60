/**
 * Maintenance: while the file `paths.maintenance` exists, visitors get it in place of the application, with 503. The
 * panel works, static files are served, and a signed-in administrator sees the application.
 *
 * Each process checks the file once a second, so creating it begins maintenance and removing it ends it. The page is
 * sent unchanged. If it is empty, or cannot be sent, for example because it is a folder, visitors get a built-in page.
 */
import type { Stats } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { reasonOf } from '../base/reason.ts'
import { isSettled, isUnchanged } from '../files/file-version.ts'
import type { CoreContext } from '../http/context.ts'
import { builtInPage, type ErrorPage } from '../http/error-reply.ts'
import { HttpError } from '../http/errors.ts'
import { canonicalPath } from '../routing/pattern.ts'

interface MaintenanceOptions {
  /** `paths.maintenance`, absolute. */
  readonly file: string
  /** Whether a request is that of a signed-in administrator. */
  readonly isAdmin: (ctx: CoreContext) => boolean
  /** Called when maintenance begins, and when it ends. */
  readonly onChange: (isOn: boolean) => void
}

const everyMs = 1000
const maxBytes = 2 ** 20
/** The page may have its own style; scripts and forms could only fail. */
const policy = "default-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src 'none'; base-uri 'none'; "
  + "form-action 'none'; frame-ancestors 'none'"

/** Watches the file, and keeps visitors out while it exists. */
export class Maintenance {
  /** The error for a visitor, whose page is `page`. */
  readonly refusal = new HttpError(503, 'maintenance', 'The application is in maintenance', {
    headers: { 'Retry-After': '60', 'Cache-Control': 'no-store' },
  })
  readonly #options: MaintenanceOptions
  #isOn = false
  #html: string | undefined
  #seen: Stats | undefined
  #problem: string | undefined
  #isLooking = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: MaintenanceOptions) {
    this.#options = options
  }

  /** Looks at the file now, and once a second until `close()`. Resolves after the first look; never rejects. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.look(), everyMs).unref()
    await this.look()
  }

  /** Looks at the file. No-op while a look lasts, as on a hanging file system. Never rejects. */
  async look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      await this.#read()
    } finally {
      this.#isLooking = false
    }
  }

  /** Whether the application is closed to the client of a request. */
  keepsOut(ctx: CoreContext): boolean {
    return this.#isOn && !canonicalPath(ctx.path).startsWith('/svc-') && !this.#options.isAdmin(ctx)
  }

  /** Returns the page for a visitor. */
  page(ctx: CoreContext): ErrorPage {
    return this.#html === undefined ? builtInPage(ctx, this.refusal) : { html: this.#html, policy }
  }

  /** Returns lines for the operator while maintenance lasts, and while the file cannot be examined. */
  warnings(): readonly string[] {
    const { file } = this.#options
    const problem = this.#problem === undefined ? [] : [`paths.maintenance: ${file} ${this.#problem}`]
    return this.#isOn ? [`maintenance: visitors get 503; to end it, remove ${file}`, ...problem] : problem
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #read(): Promise<void> {
    const { file } = this.#options
    let stats: Stats
    try {
      stats = await stat(file)
    } catch (error) {
      if (isAbsent(error)) return this.#turn(false)
      this.#problem = `cannot be examined, so maintenance stays as it is: ${reasonOf(error)}`
      return
    }
    if (this.#seen !== undefined && isUnchanged(this.#seen, stats) && isSettled(stats, Date.now())) return
    this.#html = undefined
    this.#problem = problemOf(stats)
    if (this.#problem === undefined) {
      try {
        this.#html = (await readFile(file, 'utf8')) || undefined
      } catch (error) {
        if (isAbsent(error)) return this.#turn(false)
        this.#problem = `cannot be read, so visitors get a built-in page: ${reasonOf(error)}`
      }
    }
    this.#seen = this.#problem === undefined ? stats : undefined
    this.#turn(true)
  }

  #turn(isOn: boolean): void {
    if (!isOn) this.#seen = this.#html = this.#problem = undefined
    if (isOn === this.#isOn) return
    this.#isOn = isOn
    this.#options.onChange(isOn)
  }
}

function isAbsent(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException // node:fs throws Errors.
  return code === 'ENOENT' || code === 'ENOTDIR'
}

function problemOf(stats: Stats): string | undefined {
  if (!stats.isFile()) return 'is no file, so visitors get a built-in page'
  if (stats.size > maxBytes) return `has more than ${maxBytes} bytes, so visitors get a built-in page`
  return undefined
}
