/**
 * The session of one request. `SVC_MwSession` opens it before the action runs and saves it once afterwards, before the
 * header section is sent.
 *
 * Reading and changing are synchronous: the store is read once, when the session is opened, and written once, with the
 * fields that this request changed. `destroy` and `regenerate` take effect with that write. An id from a client is used
 * only if the store has it.
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
  /** Seconds after which an unused session expires; 0: a day, and the cookie ends with the browser session. */
  readonly ttlS: number
  readonly store: SessionStore
  /** Called when a session has been written. */
  saved(): void
  /** The open streams, polls and WebSockets of sessions. */
  readonly openReplies: OpenReplies
}

/** A form id's flash messages. */
type SessionBag = Readonly<Record<string, unknown>>

const dayMs = 86_400_000
/** A request renews a session if less than this fraction of its time to live is left. */
const freshPart = 0.9
/** A session with this much more than its time to live is renewed: a clock was set back, or the time was shortened. */
const roundedMs = 1000

/** `ctx.session`. */
export class Session {
  readonly #ctx: CoreContext
  readonly #services: SessionServices
  /** Undefined until the session is open. */
  #opened: SessionData | undefined = undefined
  /** The id in the store. */
  #id: string | undefined = undefined
  /** Whether this request renews its time to live, in the store and in the client's cookie. */
  #renews = false
  /** Whether the client sent the cookie of a session that exists. */
  #isFromClient = false
  #destroys = false
  #regenerates = false
  /** Whether the session no longer existed when it was to be saved. */
  #isLost = false
  /** The running save. Never rejects. */
  #saving: Promise<void> | undefined = undefined
  /** Whether the request's own save has begun. */
  #finished = false

  constructor(ctx: CoreContext, services: SessionServices) {
    this.#ctx = ctx
    this.#services = services
  }

  // ---- for the application; each throws Error on a route without SVC_MwSession ----

  /** Returns a copy of a key's value; `fallback` if there is none. */
  get(key: string, fallback?: unknown): unknown {
    const data = this.#data()
    if (key === flashKey) return bagsOf(data) ?? fallback
    const text = data.get(fieldOf(key))
    return text === undefined ? fallback : valueOfText(text)
  }

  /**
   * Sets a key to a copy of the value.
   * @throws TypeError if the key is not a string, or `_flash`, or JSON cannot hold the value
   */
  set(key: string, value: unknown): void {
    const data = this.#data()
    const field = fieldOf(key)
    data.change(field, textOfValue(`key ${JSON.stringify(key)}`, value))
  }

  /** Whether a key exists. */
  has(key: string): boolean {
    const data = this.#data()
    return key === flashKey ? bagsOf(data) !== undefined : data.get(fieldOf(key)) !== undefined
  }

  /** Removes a key. Throws TypeError as `set` does. */
  delete(key: string): void {
    this.#data().change(fieldOf(key), undefined)
  }

  /**
   * Saves now rather than at the end of the request. Needed for changes after the response.
   * @returns a promise that rejects when the store fails, and with Error if the client needs a new id but the header
   *   section has been sent
   */
  save(): Promise<void> {
    this.#data()
    const saved = this.#saveNow()
    // A failed save leaves its changes unsaved, so the save at the end of the request repeats it, or fails again.
    if (!this.#finished) saved.catch(() => {})
    return saved
  }

  /**
   * Ends the session when it is saved: deletes its content, expires the cookie, and ends the streams, polls and
   * WebSockets that it opened. Keys set afterwards begin a new session with a new id. Call it on sign-out.
   */
  destroy(): void {
    this.#data().clear()
    this.#destroys = true
    this.#regenerates = false
  }

  /**
   * Gives the session a new id when it is saved; its content stays. Call it on sign-in, so that an id known before is
   * worthless. Also removes the CSRF token, which may be known as well. If two requests do this at the same time, the
   * later one begins a new session with the keys that it set itself. Streams, polls and WebSockets opened under the old
   * id end.
   */
  regenerate(): void {
    this.#data().change(fieldOf(csrfTokenKey), undefined)
    this.#regenerates = true
  }

  // ---- for the server's own code ----

  /** Returns the id if it stays after this request. Static, so that the secret is not a member of `ctx.session`. */
  static lastingId(session: Session): string | undefined {
    return session.#destroys || session.#regenerates ? undefined : session.#id
  }

  /** Whether `SVC_MwSession` has run on this request. */
  get isOpen(): boolean {
    return this.#opened !== undefined
  }

  /** Whether the client sent the cookie of a session that existed. */
  get isFromClient(): boolean {
    return this.#isFromClient
  }

  /** Returns a copy of a form id's messages; undefined if there are none. */
  flashBag(formId: string): Record<string, unknown> | undefined {
    const text = this.#data().get(flashFieldOf(formId))
    return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>) // `setFlashBag` wrote it
  }

  /** Sets a form id's messages; undefined removes them. Throws TypeError if JSON cannot hold them. */
  setFlashBag(formId: string, bag: SessionBag | undefined): void {
    this.#data().change(flashFieldOf(formId), bag && textOfValue(`${flashKey} ${JSON.stringify(formId)}`, bag))
  }

  /** Reads the session of the cookie, if any. Without `after`, which would need a closure per request. */
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
   * Tries the next cookie with the name. A cookie of a former application on this host, or of a longer path, may come
   * first in the header without naming a session.
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

  /** Saves at the end of the request, after its chain has returned. */
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

  /** Runs saves one at a time, since each starts with the id left by the previous one. */
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
        return found ? this.#written(newId, changes) : this.#replace()
      })
    }
    const ttlMs = this.#renews ? this.#ttlMs : undefined // Unchanged, so that it expires together with its cookie.
    return after(store.merge(id, changes, ttlMs), (found) => (found ? this.#written(id, changes) : this.#lose()))
  }

  /**
   * Sends the cookie only for a new id or a renewed time: otherwise a late response could restore an id that a sign-in
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

  /** Begins a new session: the old one no longer existed when it should get a new id. */
  #replace(): MaybePromise<void> {
    this.#id = undefined
    this.#data().forgetStored()
    return this.#begin(this.#data().changes())
  }

  /**
   * The session no longer exists: another request ended it or gave it a new id, or it expired. Keeps the worthless
   * cookie: expiring it could delete the cookie that the other request has just set.
   */
  #lose(): void {
    this.#id = undefined
    this.#isLost = true
    if (!this.#destroys) this.#data().clear()
  }

  #mustReachClient(): void {
    if (!this.#ctx.response.headersSent) return
    throw new Error('Cannot save the session: its new id needs a header field, and the headers have been sent')
  }
}
