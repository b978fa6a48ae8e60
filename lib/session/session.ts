/**
 * A session as one request sees it. `SVC_MwSession` opens it before the action runs and saves it afterwards, once,
 * before the headers leave.
 *
 * Reading and changing is synchronous: the store is asked once, when the session is opened, and told once, with the
 * fields that this request changed. An id is never taken from a client unless the store has it.
 *
 * Surprise: `destroy` and `regenerate` note what is to happen. It happens when the session is saved.
 */
import { performance } from 'node:perf_hooks'
import type { Context } from '../http/context.ts'
import { expireSessionCookie, keepPrivate, newSessionId, readSessionCookie, setSessionCookie } from './cookie.ts'
import {
  checkedKey,
  csrfTokenKey,
  fieldOf,
  flashFieldOf,
  flashKey,
  textOfBag,
  textOfValue,
  valueOfText,
} from './fields.ts'
import { bagsOf, setBags } from './flash-bags.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import { SessionData } from './session-data.ts'
import type { FieldChanges, SessionStore, StoredSession } from './store.ts'

/** What the sessions of one server share. A reload may change it while a request runs. */
export interface SessionServices {
  /** The name of the cookie. */
  readonly cookie: string
  /** Seconds that a session lives unused, from 0; 0 means a day, with a cookie that ends with the browser. */
  readonly ttlS: number
  readonly store: SessionStore
  /** Is told of each session that was written. */
  saved(): void
  /** Is told of a session that was gone when it was to be saved. */
  lost(ctx: Context): void
}

/** A form id's flash messages. */
export type SessionBag = Readonly<Record<string, unknown>>

const dayMs = 86_400_000
/** The part of its time that a session has left at least while no request renews it. */
const freshPart = 0.9
/**
 * More than its time, and so much more, is left of a session alone when a clock was set back or its time was shortened.
 */
const roundedMs = 1000

export class Session {
  readonly #ctx: Context
  readonly #services: SessionServices
  /** Undefined as long as the session is not open. */
  #opened: SessionData | undefined = undefined
  /** The id under which the store has it. */
  #id: string | undefined = undefined
  /** When it expires, by the clock of `performance.now`. */
  #expiresAtMs = 0
  /** Whether this request begins its time anew, for the store and, with the cookie, for the client. */
  #renews = false
  /** Whether the client has sent the cookie of a session. */
  #came = false
  #destroys = false
  #regenerates = false
  /** The save that is under way. It never rejects. */
  #saving: Promise<void> | undefined = undefined
  /** Whether the request's own save has begun. */
  #finished = false

  constructor(ctx: Context, services: SessionServices) {
    this.#ctx = ctx
    this.#services = services
  }

  // ---- for the application; each throws Error on a route without SVC_MwSession ----

  /** A copy of a key's value as it was set; `fallback` when there is none. */
  get(key: string, fallback?: unknown): unknown {
    const data = this.#data()
    if (key === flashKey) return bagsOf(data) ?? fallback
    const text = data.get(fieldOf(checkedKey(key)))
    return text === undefined ? fallback : valueOfText(text)
  }

  /**
   * Sets a key. What is changed in the value afterwards does not count.
   * @throws TypeError when the key is no string, or for what JSON cannot hold
   */
  set(key: string, value: unknown): void {
    const data = this.#data()
    if (key === flashKey) return setBags(data, value)
    const text = textOfValue(`key ${JSON.stringify(checkedKey(key))}`, value)
    data.change(fieldOf(key), text)
  }

  /** Whether a key is there. */
  has(key: string): boolean {
    const data = this.#data()
    return key === flashKey ? bagsOf(data) !== undefined : data.get(fieldOf(checkedKey(key))) !== undefined
  }

  /** Removes a key. */
  delete(key: string): void {
    const data = this.#data()
    if (key === flashKey) setBags(data, {})
    else data.change(fieldOf(checkedKey(key)), undefined)
  }

  /**
   * Saves now what is saved at the end of the request otherwise. Needed for what is set after the answer.
   * @returns a promise that rejects when the store fails, and with Error when the client must be sent an id and the
   *   headers have left
   */
  save(): Promise<void> {
    this.#data()
    const saved = this.#saveNow()
    // Until the end of the request nothing is lost: what failed is unsaved, so it is saved, or fails, once more there.
    if (!this.#finished) saved.catch(() => {})
    return saved
  }

  /**
   * Ends the session when it is saved: what it held is gone, the cookie expires. What is set afterwards begins a new
   * session with a new id. Call it when somebody signs out.
   */
  destroy(): void {
    this.#data().clear()
    this.#destroys = true
    this.#regenerates = false
  }

  /**
   * Gives the session a new id when it is saved; what it holds stays. Call it when somebody signs in, so that an id
   * known before is worth nothing. The CSRF token goes: it may be known as well. Of two requests that do so at the same
   * time the later one begins a new session with what it set itself.
   */
  regenerate(): void {
    this.#data().change(fieldOf(csrfTokenKey), undefined)
    this.#regenerates = true
  }

  // ---- for the server's own parts ----

  /** The id that the store has and that stays after this request; undefined when there is none. No member: a secret. */
  static lastingId(session: Session): string | undefined {
    return session.#destroys || session.#regenerates ? undefined : session.#id
  }

  /** Whether SVC_MwSession ran on this request. */
  get isOpen(): boolean {
    return this.#opened !== undefined
  }

  /** Whether the client sent the cookie of a session that was there. */
  get came(): boolean {
    return this.#came
  }

  /** A form id's messages, a copy; undefined when there are none. */
  flashBag(formId: string): Record<string, unknown> | undefined {
    const text = this.#data().get(flashFieldOf(formId))
    return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>) // `textOfBag` wrote it
  }

  /** Sets a form id's messages, undefined for none. Throws TypeError for what JSON cannot hold. */
  setFlashBag(formId: string, bag: SessionBag | undefined): void {
    this.#data().change(flashFieldOf(formId), bag === undefined ? undefined : textOfBag(formId, bag))
  }

  /**
   * Reads the session that the cookie names. Without a cookie the store is not asked. `after` would make a function for
   * each request.
   */
  open(): MaybePromise<void> {
    const { cookie, store } = this.#services
    const id = readSessionCookie(this.#ctx, cookie)
    if (id === undefined) {
      this.#opened = new SessionData()
      return
    }
    const found = store.read(id)
    return found instanceof Promise ? found.then((later) => this.#openWith(id, later)) : this.#openWith(id, found)
  }

  #openWith(id: string, found: StoredSession | undefined): void {
    this.#opened = new SessionData(found?.fields)
    if (found === undefined) return
    this.#id = id
    this.#came = true
    const { remainingMs } = found
    this.#expiresAtMs = performance.now() + remainingMs
    this.#renews = remainingMs < this.#ttlMs * freshPart || remainingMs > this.#ttlMs + roundedMs
  }

  /** The save of the request, after its chain has returned. */
  finish(): MaybePromise<void> {
    this.#finished = true
    if (this.#came) keepPrivate(this.#ctx)
    return this.#inTurn()
  }

  #data(): SessionData {
    if (this.#opened !== undefined) return this.#opened
    const route = JSON.stringify(this.#ctx.routeName)
    throw new Error(`This route has no session: add SVC_MwSession to the middleware of route ${route}`)
  }

  get #ttlMs(): number {
    const { ttlS } = this.#services
    return ttlS === 0 ? dayMs : ttlS * 1000
  }

  /** What is left of its time, so that it ends when its cookie does; above 0. */
  get #remainingMs(): number {
    return Math.max(1, Math.min(this.#ttlMs, this.#expiresAtMs - performance.now()))
  }

  async #saveNow(): Promise<void> {
    await this.#inTurn()
  }

  /** One save at a time, so that each begins with the id that the one before it left. */
  #inTurn(): MaybePromise<void> {
    if (this.#saving !== undefined) return this.#saving.then(() => this.#inTurn())
    const outcome = this.#write()
    if (!(outcome instanceof Promise)) return
    const done = (): void => {
      this.#saving = undefined
    }
    this.#saving = outcome.then(done, done)
    return outcome
  }

  #write(): MaybePromise<void> {
    if (this.#destroys) return this.#end()
    if (this.#id === undefined) return this.#begin(this.#data().changes())
    return this.#update(this.#id)
  }

  /** Ends the session, then begins a new one if something was set since. */
  #end(): MaybePromise<void> {
    const { cookie, store } = this.#services
    const id = this.#id
    const ended = (): MaybePromise<void> => {
      this.#id = undefined
      this.#destroys = false
      if (id !== undefined || this.#ctx.cookies[cookie] !== undefined) expireSessionCookie(this.#ctx, cookie)
      return this.#begin(this.#data().changes())
    }
    return id === undefined ? ended() : after(store.destroy(id), ended)
  }

  #begin(changes: FieldChanges): MaybePromise<void> {
    this.#regenerates = false
    if (changes.set.size === 0) return this.#data().saved(changes)
    this.#mustReachClient()
    const id = newSessionId()
    return after(this.#services.store.create(id, changes.set, this.#ttlMs), () => this.#written(id, changes))
  }

  #update(id: string): MaybePromise<void> {
    const { store } = this.#services
    if (!this.#regenerates && !this.#data().isChanged && !this.#renews) return
    const changes = this.#data().changes()
    if (this.#regenerates) {
      this.#mustReachClient()
      const newId = newSessionId()
      return after(store.rename(id, newId, changes, this.#ttlMs), (found) => {
        this.#regenerates = false
        return found ? this.#written(newId, changes) : this.#beginAnew()
      })
    }
    const ttlMs = this.#renews ? this.#ttlMs : this.#remainingMs
    return after(store.merge(id, changes, ttlMs), (found) => (found ? this.#written(id, changes) : this.#lose()))
  }

  /**
   * The cookie is sent with a new time to live alone: a late answer would put an id back that a sign-in has replaced.
   */
  #written(id: string, changes: FieldChanges): void {
    const { cookie, ttlS } = this.#services
    const isNew = id !== this.#id
    this.#id = id
    this.#data().saved(changes)
    this.#services.saved()
    if (!isNew && !this.#renews) return
    this.#renews = false
    this.#expiresAtMs = performance.now() + this.#ttlMs
    if (isNew || ttlS > 0) setSessionCookie(this.#ctx, cookie, id, ttlS === 0 ? undefined : ttlS)
  }

  /** The session was gone when it was to get a new id. */
  #beginAnew(): MaybePromise<void> {
    this.#id = undefined
    this.#services.lost(this.#ctx)
    this.#data().forgetStored()
    return this.#begin(this.#data().ownChanges())
  }

  /**
   * The session was gone: ended, expired or given a new id by another request. The cookie is left alone. It is worth
   * nothing, and to expire it might take away the one that the other request has just set.
   */
  #lose(): void {
    this.#id = undefined
    this.#services.lost(this.#ctx)
    if (!this.#destroys) this.#data().clear()
  }

  #mustReachClient(): void {
    if (!this.#ctx.response.headersSent) return
    throw new Error('Cannot save the session: its new id must be told in a header field, and they have been sent')
  }
}
