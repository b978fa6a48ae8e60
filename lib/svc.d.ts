/**
 * The types of all that an application may use, and nothing else. An application's `tsconfig.json` maps `svc` to this
 * file, which needs no other one but the types of Node (`@types/node`). `docs/typescript.md` shows it in use.
 *
 * The server imports some of its types; `test/package/svc-types.test.ts` holds the rest to the code. It is one
 * `declare module`, so that an application can add to `State` and `SessionValues` from any of its files.
 */
declare module 'svc' {
  export {} // So that only what says `export` is exported.

  // ---- actions, middleware, setup ----

  /**
   * An action: what it returns becomes the reply, and `undefined` keeps the one that `ctx` has. `Action<'/notes/:id'>`
   * types `ctx.params` by the pattern of its route; with `Action` alone every name is a string.
   */
  export type Action<Path extends string = string> = (ctx: Context<Path>) => unknown

  /** A middleware: replies by `ctx`, or runs the rest of the chain with `next()`. What it returns is not looked at. */
  export type Middleware = (ctx: Context, next: Next) => void | Reply | Promise<void | Reply>

  /** Runs the rest of the chain: the later middleware, then the action. */
  export type Next = () => void | Promise<void>

  /** The export `setup` of a middleware module. It runs at the start; what it returns runs at the stop. */
  export type Setup = (app: SetupApp) => void | Teardown | Promise<void | Teardown>

  /** Ends what `setup` began. Its promise is waited for. */
  export type Teardown = () => unknown

  /** The argument of `setup`. */
  export interface SetupApp {
    /** The configuration by dotted key, `config['server.port']`, and by group, `config.server`. */
    readonly config: Readonly<Record<string, unknown>>
    /** Which of the server's processes this is, from 1, and how many there are. What is done once is for the first. */
    readonly process: { readonly number: number; readonly count: number }
    /** The log of a module; a name of the application's own always passes the trace filter. */
    logger(module: string): Logger
    /** The channel with a name, as `ctx.channel` gives it. */
    channel(name: string, options?: SourceOptions): Channel
    /** The queue with a name, as `ctx.queue` gives it. */
    queue(name: string, options?: SourceOptions): Queue
  }

  // ---- the context ----

  /**
   * `ctx.state`: what middleware hands on. Add the names of your own, and `user` and `jwt` where the server's own
   * middleware set them: `declare module 'svc' { interface State { user: User } }`
   */
  export interface State {
    [name: string]: unknown
  }

  /** The parameters of a pattern by name: of `/notes/:id`, `id`; of `/files/*path`, `path`. */
  export type Params<Path extends string = string> = Path extends string
    ? string extends Path
      ? { readonly [name: string]: string }
      : { readonly [Name in Names<Path>]: string }
    : never

  type Names<Path extends string> = Path extends `${infer Segment}/${infer Rest}`
    ? NameOf<Segment> | Names<Rest>
    : NameOf<Path>
  type NameOf<Segment extends string> = Segment extends `:${infer Name}` | `*${infer Name}` ? Name : never

  /** The context of a request whose route has this pattern; without one, every parameter's name is a string. */
  export type Context<Path extends string = string> = RequestContext<Params<Path>>

  /** A request, for its middleware, its action and its view. Any member may be taken out: `const { json } = ctx`. */
  interface RequestContext<Parameters> {
    /** The method, upper case. */
    readonly method: string
    /** The path as sent: without the query, not decoded. */
    readonly path: string
    /** The query, decoded. */
    readonly query: URLSearchParams
    /** The query as sent, with its `?`; '' when there is none. */
    readonly rawQuery: string
    /** The parameters of the route's pattern, decoded; an object without prototype. */
    readonly params: Parameters
    /** The header fields of the request by lower-case name; an object without prototype. */
    readonly headers: { readonly [name: string]: string | undefined }
    /** The cookies of the request by name, decoded; an object without prototype. */
    readonly cookies: { readonly [name: string]: string | undefined }
    /** The client's address, as far as trusted proxies say it. */
    readonly ip: string
    /** Whether the client speaks TLS, to this server or to a trusted proxy. */
    readonly secure: boolean
    /** The host that the client asked for, with its port where it has one. */
    readonly host: string
    /** `1.0` or `1.1`. */
    readonly httpVersion: string
    /** The request id: the client's when it is valid, else a new one. Once asked for it is sent back. */
    readonly id: string
    /** The record of the route that answers. */
    readonly route: RouteRecord
    /** Values that middleware passes to later middleware and to the action; an object that inherits nothing. */
    readonly state: State
    /** Aborts when the client leaves before its answer is complete, and when a wait ends without its event. */
    readonly signal: AbortSignal

    /** Reads the body as bytes. It is read once, and may be asked for again; 413 when it is too large. */
    readonly readBytes: () => Promise<Buffer>
    /** Reads the body as text. */
    readonly readText: () => Promise<string>
    /** Reads the body as JSON; 400 when it is none. What it has is for you to check. */
    readonly readJson: () => Promise<unknown>
    /** Reads a form, urlencoded or multipart; 415 when the body is none. */
    readonly readForm: () => Promise<Form>

    /** Makes schemas for `validate`, and their fields. */
    readonly fields: FieldsBuilder
    /**
     * Reads a form or a JSON body by a schema; unknown members are dropped. A body of another type is 415. Wrong input
     * ends the request: 422 with `errors`, or for a form 303 back to its page, whose flash bag then has `errors` and
     * `input`. The bag is `form` unless it is named.
     */
    readonly validate: <S extends Schema | StandardSchema>(
      schema: S,
      options?: { readonly form?: string },
    ) => Promise<Validated<S>>
    /** What was typed into a field of a form that was refused, else the default. Views read it as `old()`. */
    readonly old: (field: string, fallback?: unknown, form?: string) => unknown
    /** What was wrong with a field of it: texts, none where nothing was. Views read it as `errorsOf()`. */
    readonly errorsOf: (field: string, form?: string) => readonly string[]

    /** Replies with JSON. */
    readonly json: (value: unknown, status?: number) => Reply
    /** Replies with HTML, as it is. */
    readonly html: (text: string, status?: number) => Reply
    /** Replies with plain text. */
    readonly text: (text: string, status?: number) => Reply
    /** Replies with a view; `file` is relative to `paths.root` or to the folder of the action. */
    readonly view: (file: string, data?: object, status?: number) => Reply
    /** Replies with a redirect: 302, unless the status is 301, 303, 307 or 308. */
    readonly redirect: (url: string, status?: number) => Reply
    /** Replies without a body: 204, unless another status is given. */
    readonly empty: (status?: number) => Reply
    /**
     * Throws an HttpError with a status from 400 to 599. Its message reaches the client when that is below 500. Code
     * and message are those of the status unless given: `ctx.fail(404)` is `not_found`.
     *
     * The compiler takes the code behind `ctx.fail()` for unreachable where the type of `ctx` is written out:
     * `(ctx: Context) => ...`. Elsewhere write `return ctx.fail(...)` or `find(id) ?? ctx.fail(...)`.
     */
    readonly fail: (status: number, code?: string, message?: string) => never
    /** The status to send, 200 to 599; 0 until somebody sets one. */
    status: number
    /** The reply so far; undefined until there is one. Middleware reads it after `next()`. */
    readonly reply: Reply | undefined
    /**
     * Sets a field of the answer in place of those of its name; a list gives a field each. Throws TypeError for
     * Content-Length and Transfer-Encoding, which the server sets by the body.
     */
    readonly setHeader: (name: string, value: string | number | readonly string[]) => void
    /** Sets a cookie: path `/`, HttpOnly, SameSite=Lax and, on TLS, Secure, unless the attributes say otherwise. */
    readonly setCookie: (name: string, value: string, attributes?: CookieAttributes) => void
    /** The path of a named route, its parameters percent-encoded. Throws when one is missing. */
    readonly url: (name: string, params?: Readonly<Record<string, string | number>>) => string

    /** The session. Its methods throw on a route without `SVC_MwSession`. */
    readonly session: Session
    /** The flash messages of a form id. */
    readonly flash: (id: string) => FlashBag
    /**
     * Signs a user in, as `SVC_MwIsAuth` knows them: the session gets the user and a new id, and loses its CSRF token.
     * What was opened under the old id ends.
     * @param user any JSON value that names somebody: a name, an id, an object. Anything else, such as a promise that
     *   was not awaited, is a TypeError
     */
    readonly signIn: (user: unknown) => void
    /** Ends the session with all that it holds, and the streams, polls and WebSockets that it opened. */
    readonly signOut: () => void
    /** Hashes and checks passwords of users. */
    readonly password: Passwords
    /**
     * The nonce of this answer, for `<script nonce>` and `<style nonce>`. The first use adds it to the policy of
     * `SVC_MwHeaders`; '' where that did not run.
     */
    readonly cspNonce: string
    /** The name of `cspNonce` in views. */
    readonly csp_nonce: string
    /** A hidden input with a CSRF token of the kind that this route checks. */
    readonly csrfInput: () => string
    /** The session's CSRF token where `SVC_MwCsrf` ran, else ''. */
    readonly csrf_token: string
    /** A hidden input with a signed id; '' for the id ''. Anybody can read it. */
    readonly resourceInput: (id: string | number | bigint) => string
    /** The id that came back in that input; '' when it is missing or was not signed here. */
    readonly resourceId: () => Promise<string>
    /** The specification's name for `session`. */
    readonly USession: () => Session
    /** The specification's name for `flash`. */
    readonly UFlash: (id: string) => FlashBag
    /** The specification's name for `csrfInput`. */
    readonly UCsrfToHtml: () => string
    /** The specification's name for `resourceInput`. */
    readonly UResourceToHtml: (id: string | number | bigint) => string
    /** The specification's name for `resourceId`. */
    readonly UGetResource: () => Promise<string>

    /** The channel with a name: each of its events goes to everybody who waits. */
    readonly channel: (name: string, options?: SourceOptions) => Channel
    /** The queue with a name: each of its events goes to one client. */
    readonly queue: (name: string, options?: SourceOptions) => Queue
    /** Replies when there is an event, or with an empty answer when the time is over. */
    readonly longPoll: (source: Channel | Queue, options?: LongPollOptions) => Reply
    /** Replies with a stream of a channel's events (`text/event-stream`). */
    readonly sse: (channel: Channel, options?: SseOptions) => Reply
    /** Replies to a live page: `sse` when `Accept` names `text/event-stream`, else `longPoll`. */
    readonly live: (channel: Channel) => Reply
    /**
     * Makes the client of a stream or WebSocket a member of the channel while it is open, and tells it who is there.
     * A member has at most 1 KiB as JSON; connections with one id are one member.
     */
    readonly presence: (channel: Channel, member: Member) => void
    /** Replies with what the work returns; 204 at the deadline. The signal aborts when nobody waits any more. */
    readonly hold: (work: (signal: AbortSignal) => unknown, options?: HoldOptions) => Reply

    /** The log of module `app`: `log(message)` is INFO, and it has a method for each level. */
    readonly log: Logger
    /** The log of another module; a name of the application's own always passes the trace filter. */
    readonly logger: (module: string) => Logger
    /** Logs at level 1, DEBUG. */
    readonly ld: Logger['debug']
    /** Logs at level 2, INFO. */
    readonly l: Logger['info']
    /** Logs at level 3, WARN. */
    readonly lw: Logger['warn']
    /** Logs at level 4, ERROR. */
    readonly le: Logger['error']
    /** Logs at level 5, FATAL: a line, no more. */
    readonly lf: Logger['fatal']
  }

  /** The record of a route, with the defaults of its file. */
  export interface RouteRecord {
    readonly name: string
    /** The pattern. */
    readonly url: string
    /** The program, relative to `paths.root`, with `@export` for a named export. */
    readonly action: string
    /** `*`, or methods with commas: `GET,POST`. */
    readonly method: string
    /** Names with commas; '' for none. */
    readonly middleware: string
    readonly scope: string
    /** The most KiB of a body, in place of `server.body_limit_kb`. */
    readonly body_limit_kb?: number
    /** The form of its errors; `auto` goes by the client. */
    readonly error_format?: 'json' | 'html' | 'auto'
  }

  /** What `ctx.json()` and the other replies return. What is in it is the server's own. */
  export interface Reply {
    readonly [replyMark]: true
  }
  const replyMark: unique symbol // For the compiler alone.

  /** The attributes of a cookie. */
  export interface CookieAttributes {
    /** Seconds; 0 or less: the browser drops it. Without it and `expires` the cookie ends with the browser. */
    readonly maxAge?: number
    /** `maxAge` goes before it. */
    readonly expires?: Date
    /** `/` unless given. */
    readonly path?: string
    /** This host alone unless given; with it, its subdomains too. */
    readonly domain?: string
    /** true unless given. */
    readonly httpOnly?: boolean
    /** Unless given, true on TLS. */
    readonly secure?: boolean
    /** `Lax` unless given. `None` needs `secure`. */
    readonly sameSite?: 'Strict' | 'Lax' | 'None' | 'strict' | 'lax' | 'none'
    /** Keeps the cookie apart for each site that embeds this one; false unless given; needs `secure`. */
    readonly partitioned?: boolean
  }

  /** An error that ends a request with its status. */
  export class HttpError extends Error {
    override readonly name: string
    /** 400 to 599. */
    readonly status: number
    /** A short word for programs; the member `error` of the JSON body. */
    readonly code: string
    /** Header fields to send along. */
    readonly headers: Readonly<Record<string, string>>
    /** What is wrong with the input, where `ctx.validate` threw it. */
    readonly invalid: InvalidInput | undefined
    /** @param message for the client below 500, only for the log from 500 on */
    constructor(
      status: number,
      code?: string,
      message?: string,
      options?: { headers?: Readonly<Record<string, string>>; cause?: unknown; invalid?: InvalidInput },
    )
  }

  // ---- forms ----

  /** A form that was read. */
  export interface Form {
    /** The files in the order sent. An input left empty gives none. */
    readonly files: readonly FormFile[]
    /** The first value of a name; undefined for what was not sent, such as an unchecked checkbox. */
    get(name: string): string | undefined
    /** All values of a name in the order sent. */
    getAll(name: string): string[]
    /** Whether a field of this name was sent. Files do not count. */
    has(name: string): boolean
    /** The names, each once. */
    keys(): IterableIterator<string>
    /** Name and value of every field. */
    entries(): IterableIterator<[string, string]>
  }

  /** A file of a form: up to 64 KiB in `bytes`, else in the temporary file `path`. */
  export type FormFile = FileInMemory | FileOnDisk

  interface FileFacts {
    /** The name of the input. */
    readonly name: string
    /** The client's word, without folders and control characters. No name to store a file under. */
    readonly filename: string
    /** The media type by the client's word, in lower case. */
    readonly type: string
    /** Bytes. */
    readonly size: number
  }
  interface FileInMemory extends FileFacts {
    /** The content. */
    readonly bytes: Buffer
    readonly path?: undefined
  }
  interface FileOnDisk extends FileFacts {
    /** A file of mode 0600, deleted when the request ends: move it or read it before. */
    readonly path: string
    readonly bytes?: undefined
  }

  // ---- validation ----

  /** A field of a form or of a JSON body. It does not change: both methods return another one. */
  export interface Field<T = unknown> {
    /** The same field, which may be left out or sent empty: its value is undefined then. */
    optional(): Field<T | undefined>
    /** The same field, with a value for when it is left out or empty. Throws TypeError for one that breaks its rule. */
    default(value: Exclude<T, undefined>): Field<Exclude<T, undefined>>
  }

  /** What `fields({...})` makes: a schema for `ctx.validate`. */
  export interface Schema<T = unknown> {
    readonly [values]: T
  }
  const values: unique symbol

  /** Fields by name. */
  export interface Definition {
    readonly [name: string]: Field
  }

  /** The values that a definition gives; those of optional fields need not be there. */
  export type Values<D extends Definition = Definition> = Flat<
    { [Name in RequiredNames<D>]: ValueOf<D[Name]> } & {
      [Name in Exclude<keyof D, RequiredNames<D>>]?: ValueOf<D[Name]>
    }
  >
  type ValueOf<F> = F extends Field<infer T> ? T : never
  type RequiredNames<D> = { [Name in keyof D]: undefined extends ValueOf<D[Name]> ? never : Name }[keyof D]
  type Flat<T> = { [Name in keyof T]: T[Name] }

  /** The least and the most, both included: of a number, a date, the length of a text, the entries of a list. */
  interface Bounds<T = number> {
    readonly min?: T | undefined
    readonly max?: T | undefined
  }
  interface TextOptions extends Bounds {
    /** Without the flags g, y and v. With it `max` is 255 unless given. */
    readonly pattern?: RegExp | undefined
  }

  /**
   * Makes schemas for `ctx.validate`, and their fields. Every field is required unless it has `.optional()` or
   * `.default(value)`. A definition that is wrong throws TypeError.
   */
  export interface FieldsBuilder {
    <const D extends Definition>(definition: D): Schema<Values<D>>
    /** Text without the white space around it, unless `trim` is false. */
    text(options?: TextOptions & { readonly trim?: boolean | undefined }): Field<string>
    /** Text that is not trimmed and never shown again: a password, a code. */
    secret(options?: TextOptions): Field<string>
    /** An address as browsers take it, of at most 254 characters unless `max` is given. */
    email(options?: TextOptions): Field<string>
    /** An http or https address, of at most 2048 characters unless `max` is given. */
    url(options?: TextOptions): Field<string>
    /** A day that exists, as the text `YYYY-MM-DD`. */
    date(options?: Bounds<string>): Field<string>
    /** A whole number below 2^53, positive or negative. */
    integer(options?: Bounds): Field<number>
    /** A number, but for infinite ones. */
    number(options?: Bounds): Field<number>
    /** In a form a checkbox: `on`, `true`, `1`, `yes` or `off`, `false`, `0`, `no`; not sent: false. */
    boolean(): Field<boolean>
    /** One of these texts. */
    choice<const Choice extends string>(choices: readonly Choice[]): Field<Choice>
    choice<const Choice extends string>(...choices: readonly Choice[]): Field<Choice>
    /** A list, of at most 1000 entries unless `max` is given. In a form: several inputs of one name. */
    list<T>(item: Field<T>, options?: Bounds): Field<Exclude<T, undefined>[]>
    /** An object, without prototype. In a form: inputs with names such as `address.city`. */
    object<const D extends Definition>(definition: D): Field<Values<D>>
    /** A file of a multipart form. Its type is what the client says; `image/*` never takes `image/svg+xml`. */
    file(options?: {
      readonly types?: readonly string[] | undefined
      readonly maxKb?: number | undefined
    }): Field<FormFile>
  }

  /** Makes schemas for `ctx.validate`, and their fields. */
  export const fields: FieldsBuilder

  /** A schema of another make: Standard Schema, version 1 (https://standardschema.dev). */
  export interface StandardSchema {
    readonly '~standard': {
      readonly version: 1
      readonly validate: (value: unknown) => unknown
      readonly types?: { readonly input: unknown; readonly output: unknown } | undefined
    }
  }

  /** The values that a schema gives. */
  export type Validated<S = Schema> =
    S extends Schema<infer T> ? T : S extends StandardSchema ? NonNullable<S['~standard']['types']>['output'] : never

  /** What is wrong with the input of a request: the member `invalid` of an HttpError 422. */
  export interface InvalidInput {
    /** By path (`address.city`, `tags.0`; '' for the whole): what is wrong there. */
    readonly errors: { readonly [path: string]: readonly string[] }
    /** What was typed into a form, without secrets; empty for JSON. */
    readonly input: { readonly [name: string]: unknown }
  }

  // ---- sessions ----

  /**
   * The values of a session that have a type: `declare module 'svc' { interface SessionValues { cart: Item[] } }`.
   * Other keys hold unknown values.
   */
  export interface SessionValues {}

  /** `ctx.session`: what the server keeps of one visitor. */
  export interface Session {
    /** A copy of what was set; undefined when there is nothing. */
    get<Key extends keyof SessionValues>(key: Key): SessionValues[Key] | undefined
    /** A copy of what was set, else the fallback. */
    get<Key extends keyof SessionValues>(key: Key, fallback: SessionValues[Key]): SessionValues[Key]
    /** A copy of what was set, else the fallback, whose type it should have. */
    get<Value>(key: string, fallback: Value): Widened<Value>
    get(key: string): unknown
    /** Sets a value: what JSON can hold, at any depth. Anything else, such as a Map or NaN, is a TypeError. */
    set<Key extends string>(key: Key, value: Key extends keyof SessionValues ? SessionValues[Key] : unknown): void
    /** Whether the key is there. */
    has(key: string): boolean
    /** Removes a key. */
    delete(key: string): void
    /** Saves now; only needed for what is set after the answer. */
    save(): Promise<void>
    /** Ends the session when it is saved, and what it has open. `ctx.signOut()` does that. */
    destroy(): void
    /** Gives it a new id when it is saved; what it holds stays, but for the CSRF token. `ctx.signIn()` does that. */
    regenerate(): void
  }

  /** Of a fallback's type the general one: of `0` it is number. */
  type Widened<Value> = Value extends string
    ? string
    : Value extends number
      ? number
      : Value extends boolean
        ? boolean
        : Value extends null | undefined
          ? unknown
          : Value

  /** The flash messages of a form id: values that are read once. */
  export interface FlashBag {
    /** Sets a value: what JSON can hold, else a TypeError. */
    set(key: string, value: unknown): void
    /** Sets each member; other keys stay. */
    set(values: object): void
    /** Returns a value and removes it. */
    get(key: string): unknown
    /** Returns a value and removes it; the fallback when there is none. */
    get<Value>(key: string, fallback: Value): Widened<Value>
    /** Whether there is a value; it stays. */
    has(key: string): boolean
    /** Removes a value unread. */
    delete(key: string): void
    /** Empties the bag. */
    clear(): void
    /** Nothing that is not done already: each change is in the session at once. */
    save(): void
    /** The form id. */
    getId(): string
  }

  /** `ctx.password`: two hashes are made at the same time in a process, 100 wait, and more are 503. */
  export interface Passwords {
    /** The text to store for a password. 422 for one of more than 1,024 bytes. */
    hash(password: string): Promise<string>
    /**
     * Whether a password is that of a stored hash, and whether the hash should be made anew: it is weaker than new
     * ones are, or was made of text that is not in Unicode normal form C.
     * @param stored undefined, where there is no such user, takes as long and is never right; a text that is no hash
     *   throws
     */
    verify(password: string, stored: string | undefined): Promise<{ readonly ok: boolean; readonly stale: boolean }>
  }

  // ---- events and WebSockets ----

  /** A channel: each event goes to everybody. */
  export interface Channel {
    readonly name: string
    /** Publishes what JSON can hold, else TypeError. Gives the id of the event, with several processes as a promise. */
    publish(value: unknown): number | Promise<number>
    /** Calls a function with each event from now on. Returns what ends that. */
    subscribe(listener: (event: { readonly id: number; readonly data: unknown }) => unknown): () => void
    /** The id of the newest event, with several processes as a promise. */
    readonly last_id: number | Promise<number>
  }

  /** A queue: each event goes to one client, and is kept until one asks. */
  export interface Queue {
    readonly name: string
    /** Appends what JSON can hold, else a TypeError. */
    push(value: unknown): void | Promise<void>
  }

  /** Somebody who is there, as an action tells it to `ctx.presence`. */
  export interface Member {
    readonly id: string | number
    readonly [name: string]: unknown
  }

  /** How much a channel or queue keeps, given at its first use. */
  export interface SourceOptions {
    /** Events, 1 to 1,000,000; 1000 unless given. */
    readonly events?: number
    /** Seconds; 3600 unless given. */
    readonly age_s?: number
  }

  /** The options of `ctx.longPoll`. */
  export interface LongPollOptions {
    /** Seconds until the empty answer; 30 unless given. */
    readonly timeout_s?: number
    /** For a queue `simple`, the default, or `typed`; for a channel `cursor`. */
    readonly form?: 'simple' | 'typed' | 'cursor'
  }

  /** The options of `ctx.sse`. */
  export interface SseOptions {
    /** Milliseconds until a browser connects again; 2000 unless given. */
    readonly retry_ms?: number
    /** Seconds until the stream ends; `pool_rest.stream_timeout_s` unless given. */
    readonly timeout_s?: number
  }

  /** The options of `ctx.hold`. */
  export interface HoldOptions {
    /** Seconds; `pool_rest.stream_timeout_s` unless given. */
    readonly timeout_s?: number
  }

  /** The export `websocket` of a module. Each member may be missing, and each function may be async. */
  export interface WebSocketHandlers<Path extends string = string> {
    /** The subprotocols of the server: the first that the client offers too is chosen. Without it none is. */
    readonly protocols?: readonly string[]
    /** Called first; no message is read before it is done. */
    open?(ws: WebSocketConnection, ctx: Context<Path>): unknown
    /** Called with each message: text as a string, bytes as a Buffer. */
    message?(ws: WebSocketConnection, data: string | Buffer): unknown
    /** Called at the end. 1005: the peer gave no code; 1006: it ended without the closing handshake. */
    close?(ws: WebSocketConnection, code: number, reason: string): unknown
  }

  /** A connection, as the handlers get it. */
  export interface WebSocketConnection {
    /** Whether messages can be sent. */
    readonly isOpen: boolean
    /** The subprotocol that was chosen of `protocols`; empty when there is none. */
    readonly protocol: string
    /** Bytes that wait because the peer does not read fast enough. */
    readonly bufferedAmount: number
    /** Values of the handlers for this connection; an object without prototype. */
    readonly state: Record<string, unknown>
    /** Sends a string as text, bytes as binary. Returns false when the connection is not open, or is cut. */
    send(data: string | NodeJS.ArrayBufferView): boolean
    /**
     * Sends the events of a channel as text, `{"id", "data"}`, and `{"gap": true, "last_id"}` where some are missing:
     * from `since`, the id of the last event that the client has, or from now on.
     */
    follow(channel: Channel, options?: { readonly since?: number | string | undefined }): void
    /** Starts the closing handshake; code 1000 unless given. */
    close(code?: number, reason?: string): void
    /** Cuts the connection at once. */
    terminate(): void
  }

  // ---- logs ----

  /** What a line of the log says besides its message; as text ` key=value` behind it. */
  export type LogFields = Readonly<Record<string, unknown>>

  /** The log of a module: called, it writes an INFO line. */
  export interface Logger {
    (message: string, fields?: LogFields): void
    debug(message: string, fields?: LogFields): void
    info(message: string, fields?: LogFields): void
    /** @param thrown its stack follows the line */
    warn(message: string, thrown?: unknown, fields?: LogFields): void
    warn(message: string, fields: LogFields): void
    /** @param thrown its stack follows the line */
    error(message: string, thrown?: unknown, fields?: LogFields): void
    error(message: string, fields: LogFields): void
    /** @param thrown its stack follows the line */
    fatal(message: string, thrown?: unknown, fields?: LogFields): void
    fatal(message: string, fields: LogFields): void
    /** Whether a DEBUG line would be written now. */
    readonly debugEnabled: boolean
  }

  // ---- embedding and tests ----

  /** Builds a server from a configuration. Throws ConfigError. */
  export function createApp(options?: AppOptions): App

  /** The options of `createApp`. */
  export interface AppOptions {
    /** The keys of `svc.json`, nested or dotted; what is missing has its default. */
    readonly config?: Readonly<Record<string, unknown>>
    /** The base of relative paths; the working directory unless given. */
    readonly folder?: string
    /** In place of `app_key` of the configuration. */
    readonly appKey?: string
    /** The file that setup saves the admin's credentials to; without it setup is refused. */
    readonly configFile?: string
    /** Whether it takes up what is saved, in `dev`; false unless given. */
    readonly watch?: boolean
    /** Called when a stop begins, whoever asked for it. */
    readonly onStop?: () => void
  }

  /** A server. It never touches the process around it. */
  export interface App extends SetupApp {
    /** Loads the application and listens. Rejects with what is wrong; then call `stop`. */
    start(): Promise<{ readonly host: string; readonly port: number; readonly url: string }>
    /**
     * Sends a request without a port, for tests. It takes what `fetch` takes, and paths; a redirect is not followed.
     * Over `https:` the request is secure.
     */
    request(input: string | URL | Request, init?: RequestInit): Promise<Response>
    /** What `/svc-status` shows as warnings. */
    warnings(): readonly string[]
    /** Stops gracefully, as SIGTERM does. Resolves when all is closed. */
    stop(): Promise<void>
    /** Writes and closes the logs: the last call. */
    closeLogs(): void
  }

  /** The configuration cannot be used: `createApp` throws it. */
  export class ConfigError extends Error {
    private constructor()
    readonly problems: readonly string[]
  }

  /** The middleware, or its `config.json`, cannot be loaded: `start` rejects with it. */
  export class MiddlewareError extends Error {
    private constructor()
    readonly file: string
  }

  /** Route files or modules cannot be used: `start` rejects with it. */
  export class ReloadError extends Error {
    private constructor()
    readonly problems: readonly { readonly file: string; readonly name: string; readonly error: string }[]
  }
}

// The browser's half of `ctx.live`, for page scripts. TypeScript takes a name that begins with `/` by a pattern alone.
declare module '*/svc-live.js' {
  /**
   * Follows a channel. Its functions are called one after the other, each when the promise of the one before settled.
   */
  export function live<Data = unknown>(url: string | URL, options?: LiveOptions<Data>): Live

  /** The state of a live page. */
  export type LiveState = 'connecting' | 'open' | 'waiting' | 'hidden' | 'offline' | 'refused' | 'closed'

  /** What a page wants of a channel. */
  export interface LiveOptions<Data = unknown> {
    /** Called with each event, once, in order. */
    readonly onEvent?: (data: Data, event: { readonly id: number }) => unknown
    /** Called when events are missing: read anew what the page shows. Events up to `last_id` are not given any more. */
    readonly onGap?: (gap: { readonly last_id: number }) => unknown
    /** Called with all who are there (`ctx.presence`) when somebody comes or goes. */
    readonly onPresence?: (members: readonly LiveMember[]) => unknown
    readonly onState?: (state: LiveState) => unknown
    /** `auto`, unless given: a stream, and polls where something between holds streams back. */
    readonly transport?: 'auto' | 'sse' | 'poll'
    /** Whether tabs with this address and `as` share one connection; true unless given. */
    readonly shared?: boolean
    /** Whose page it is: tabs of different users share nothing. */
    readonly as?: string
    /** Whether the cursor outlives a reload of the page, in `sessionStorage`. */
    readonly remember?: boolean
    /** The id of the last event that the page shows already; unless given, it begins with the next event. */
    readonly since?: number | string | undefined
  }

  /** Somebody who is there, as `ctx.presence` was given them. */
  export interface LiveMember {
    readonly id: string | number
    readonly [name: string]: unknown
  }

  /** A channel that is followed. */
  export interface Live {
    /** Ends it; nothing is called any more. */
    close(): void
    readonly state: LiveState
    /** The id up to which the page was given everything; undefined before the first. */
    readonly lastId: number | undefined
  }
}
