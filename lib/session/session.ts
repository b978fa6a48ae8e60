/**
 * A session as one request sees it. `SVC_MwSession` opens it before the action runs and saves it once afterwards,
 * before the header section is sent.
 *
 * Reading and changing are synchronous: the store is read once, when the session is opened, and written once, with the
 * fields that this request changed. `destroy` and `regenerate` take effect with that write. An id that a client sends
 * is used only when the store has it.
 */
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { CoreContext } from '../http/context.ts'
import { DeferredReply, UpgradeReply } from '../http/reply.ts'
import { expireSessionCookie, keepPrivate, newSessionId, setSessionCookie } from './cookie.ts'
import { readSessionCookie, readSessionCookies } from './cookie.ts'
import { csrfTokenKey, fieldOf, flashFieldOf, flashKey, textOfValue, valueOfText } from './fields.ts'
import { bagsOf, SessionData } from './session-data.ts'
import type { OpenReplies } from './open-replies.ts'
import type { FieldChanges, SessionStore, StoredSession } from './store.ts'

/** Shared by the sessions of one server. A reload may change it while a request runs. */
export interface SessionServices {
  /** The name of the cookie. */
  readonly cookie: string
  /** Seconds that a session lives unused, from 0; 0 means a day, with a cookie that ends with the browser. */
  readonly ttlS: number
  readonly store: SessionStore
  /** Called when a session has been written. */
  saved(): void
  /** The streams, polls and WebSockets that sessions have open. */
  readonly openReplies: OpenReplies
}

/** A form id's flash messages. */
type SessionBag = Readonly<Record<string, unknown>>

const dayMs = 86_400_000
/** A request renews a session that has less than this part of its time to live left. */
const freshPart = 0.9
/** A session with this much more than its time to live left is renewed: a clock was set back, or the time shortened. */
const roundedMs = 1000

/** `ctx.session`. */
export class Session {
  readonly #ctx: CoreContext
  readonly #services: SessionServices
  /** Undefined until the session is open. */
  #opened: SessionData | undefined = undefined
  /** The id under which the store has it. */
  #id: string | undefined = undefined
  /** Whether this request renews its time to live, in the store and in the client's cookie. */
  #renews = false
  /** Whether the client sent the cookie of a session that exists. */
  #isFromClient = false
  #destroys = false
  #regenerates = false
  /** Whether the session was gone when it was to be saved. */
  #isLost = false
  /** The save that is running. It never rejects. */
  #saving: Promise<void> | undefined = undefined
  /** Whether the request's own save has begun. */
  #finished = false

  constructor(ctx: CoreContext, services: SessionServices) {
    this.#ctx = ctx
    this.#services = services
  }

  // ---- for the application; each throws Error on a route without SVC_MwSession ----

  /** A copy of a key's value as it was set; `fallback` when there is none. */
  get(key: string, fallback?: unknown): unknown {
    const data = this.#data()
    if (key === flashKey) return bagsOf(data) ?? fallback
    const text = data.get(fieldOf(key))
    return text === undefined ? fallback : valueOfText(text)
  }

  /**
   * Sets a key to a copy of the value.
   * @throws TypeError when the key is not a string, or `_flash`, or JSON cannot hold the value
   */
  set(key: string, value: unknown): void {
    const data = this.#data()
    const field = fieldOf(key)
    data.change(field, textOfValue(`key ${JSON.stringify(key)}`, value))
  }

  /** Whether a key is there. */
  has(key: string): boolean {
    const data = this.#data()
    return key === flashKey ? bagsOf(data) !== undefined : data.get(fieldOf(key)) !== undefined
  }

  /** Removes a key. Throws TypeError as `set` does. */
  delete(key: string): void {
    this.#data().change(fieldOf(key), undefined)
  }

  /**
   * Saves now rather than at the end of the request. Needed for changes after the answer.
   * @returns a promise that rejects when the store fails, and with Error when the client must get an id and the header
   *   section has been sent
   */
  save(): Promise<void> {
    this.#data()
    const saved = this.#saveNow()
    // A failed save leaves its changes unsaved, so the save at the end of the request repeats it, or fails once more.
    if (!this.#finished) saved.catch(() => {})
    return saved
  }

  /**
   * Ends the session when it is saved: its content is deleted and the cookie expires, and the streams, polls and
   * WebSockets that it opened end. Keys set afterwards begin a new session with a new id. Call it when somebody signs
   * out.
   */
  destroy(): void {
    this.#data().clear()
    this.#destroys = true
    this.#regenerates = false
  }

  /**
   * Gives the session a new id when it is saved; its content stays. Call it when somebody signs in, so that an id known
   * before is worthless. The CSRF token is removed, since it may be known as well. When two requests do this at the
   * same time, the later one begins a new session with the keys that it set itself. Streams, polls and WebSockets that
   * were opened under the old id end.
   */
  regenerate(): void {
    this.#data().change(fieldOf(csrfTokenKey), undefined)
    this.#regenerates = true
  }

  // ---- for the server's own parts ----

  /** The id that stays after this request, if any. Static, so that the secret is no member of `ctx.session`. */
  static lastingId(session: Session): string | undefined {
    return session.#destroys || session.#regenerates ? undefined : session.#id
  }

  /** Whether `SVC_MwSession` ran on this request. */
  get isOpen(): boolean {
    return this.#opened !== undefined
  }

  /** Whether the client sent the cookie of a session that existed. */
  get isFromClient(): boolean {
    return this.#isFromClient
  }

  /** A form id's messages, a copy; undefined when there are none. */
  flashBag(formId: string): Record<string, unknown> | undefined {
    const text = this.#data().get(flashFieldOf(formId))
    return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>) // `setFlashBag` wrote it
  }

  /** Sets a form id's messages; undefined removes them. Throws TypeError when JSON cannot hold them. */
  setFlashBag(formId: string, bag: SessionBag | undefined): void {
    this.#data().change(flashFieldOf(formId), bag && textOfValue(`${flashKey} ${JSON.stringify(formId)}`, bag))
  }

  /** Reads the session that the cookie names, if any. Without `after`, which would take a closure a request. */
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

  #openWith(id: string, found: StoredSession | undefined): MaybePromise<void> {
    if (found === undefined) return this.#openOther(readSessionCookies(this.#ctx, this.#services.cookie), 1)
    this.#opened = new SessionData(found.fields)
    this.#id = id
    this.#isFromClient = true
    const { remainingMs } = found
    this.#renews = remainingMs < this.#ttlMs * freshPart || remainingMs > this.#ttlMs + roundedMs
  }

  /**
   * Reads the session of a later cookie of the name. A cookie of an application that was on this host before, or of a
   * longer path, comes first in the header and names no session.
   */
  #openOther(ids: readonly string[], at: number): MaybePromise<void> {
    const id = ids[at]
    if (id === undefined) {
      this.#opened = new SessionData()
      return
    }
    return after(this.#services.store.read(id), (found) => {
      return found === undefined ? this.#openOther(ids, at + 1) : this.#openWith(id, found)
    })
  }

  /** Saves at the end of the request, when its chain has returned. */
  finish(): MaybePromise<void> {
    this.#finished = true
    if (this.#isFromClient) keepPrivate(this.#ctx)
    const saved = this.#inTurn()
    const { reply } = this.#ctx
    const staysOpen = reply instanceof DeferredReply || reply instanceof UpgradeReply
    return staysOpen ? after(saved, () => this.#endsWithSession(reply)) : saved
  }

  #endsWithSession(reply: DeferredReply | UpgradeReply): void {
    if (this.#isLost) reply.revoke()
    else if (this.#id !== undefined) this.#services.openReplies.add(this.#id, this.#ctx, reply)
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

  async #saveNow(): Promise<void> {
    await this.#inTurn()
  }

  /** Saves one after the other, since each begins with the id that the one before it left. */
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

  /** Ends the session, then begins a new one if a key was set since. */
  #end(): MaybePromise<void> {
    const { cookie, store } = this.#services
    const id = this.#id
    const ended = (): MaybePromise<void> => {
      this.#id = undefined
      this.#destroys = false
      if (id !== undefined) this.#services.openReplies.end(id)
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
        if (found) this.#services.openReplies.end(id)
        return found ? this.#written(newId, changes) : this.#beginAnew()
      })
    }
    const ttlMs = this.#renews ? this.#ttlMs : undefined // Kept, so that it expires together with its cookie.
    return after(store.merge(id, changes, ttlMs), (found) => (found ? this.#written(id, changes) : this.#lose()))
  }

  /**
   * Sends the cookie only for a new id or a renewed time: otherwise a late answer could bring back an id that a sign-in
   * has replaced.
   */
  #written(id: string, changes: FieldChanges): void {
    const { cookie, ttlS } = this.#services
    const isNew = id !== this.#id
    this.#id = id
    this.#data().saved(changes)
    this.#services.saved()
    if (!isNew && !this.#renews) return
    this.#renews = false
    if (isNew || ttlS > 0) setSessionCookie(this.#ctx, cookie, id, ttlS === 0 ? undefined : ttlS)
  }

  /** The session was gone when it should get a new id. */
  #beginAnew(): MaybePromise<void> {
    this.#id = undefined
    this.#data().forgetStored()
    return this.#begin(this.#data().changes())
  }

  /**
   * The session was gone: another request ended it or gave it a new id, or it expired. Its cookie stays, although it is
   * worthless: expiring it could delete the cookie that the other request has just set.
   */
  #lose(): void {
    this.#id = undefined
    this.#isLost = true
    if (!this.#destroys) this.#data().clear()
  }

  #mustReachClient(): void {
    if (!this.#ctx.response.headersSent) return
    throw new Error('Cannot save the session: its new id must be told in a header field, and they have been sent')
  }
}
