/**
 * The public types for applications, and nothing else. An application's `tsconfig.json` maps `svc` to this file, which
 * needs only the types of Node (`@types/node`). `docs/typescript.md` shows how to use it.
 *
 * The server imports some of its types; `test/package/svc-types.test.ts` checks the rest against the code. It is one
 * `declare module`, so that an application can extend `State` and `SessionValues` from any of its files.
 */
declare module 'svc' {
  export {} // Exports only declarations marked `export`.

  // ---- actions, middleware, setup ----

  /**
   * An action: the value it returns becomes the reply; `undefined` keeps the reply of `ctx`. `Action<'note'>` types
   * `ctx.params` by the route of that name, `Action<'/notes/:id'>` by the pattern; with plain `Action` every parameter
   * is a string.
   */
  export type Action<Route extends RouteOrPattern = never> = (ctx: Context<Route>) => unknown

  /** A middleware: replies with `ctx`, or runs the rest of the chain with `next()`. Its return value is ignored. */
  export type Middleware = (ctx: Context, next: Next) => void | Reply | Promise<void | Reply>

  /** Runs the rest of the chain: the later middleware, then the action. */
  export type Next = () => void | Promise<void>

  /** The export `setup` of a middleware module. It runs at the start; the function it returns runs at the stop. */
  export type Setup = (app: SetupApp) => void | Teardown | Promise<void | Teardown>

  /** Undoes `setup`. The server awaits its promise. */
  export type Teardown = () => unknown

  /** The argument of `setup`. */
  export interface SetupApp {
    /** The configuration by dotted key, `config['server.port']`, and by group, `config.server`. */
    readonly config: Readonly<Record<string, unknown>>
    /** The number of this process, from 1, and how many there are. Run one-time work in process 1. */
    readonly process: { readonly number: number; readonly count: number }
    /** The settings of the application, as `ctx.settings`. */
    readonly settings: Readonly<Settings>
    /** Returns the log of a module; the application's own names always pass the trace filter. */
    logger(module: string): Logger
    /** Returns the path of a named route, as `ctx.url` does. The routes exist once `setup` has run. */
    url<Name extends RouteName>(name: Name, ...params: UrlArguments<Name>): string
    /** Returns the channel with a name, as `ctx.channel` does. */
    channel(name: string, options?: SourceOptions): Channel
    /** Returns the queue with a name, as `ctx.queue` does. */
    queue(name: string, options?: SourceOptions): Queue
    /** Adds a job, as `ctx.enqueue` does. */
    enqueue(name: string, data?: unknown, options?: EnqueueOptions): Promise<string>
    /** Creates metrics for `/svc-metrics` and `/svc-status`. They end with the module. */
    readonly metrics: AppMetrics
    /**
     * Adds a check: `/svc-ready` is 503 while it returns false, throws, or takes more than two seconds. It ends with
     * the module.
     * @param name names it in warnings: 1 to 100 characters
     * @throws Error for a name that another check has
     */
    ready(name: string, check: () => unknown): void
  }

  /** `app.metrics`. A name has letters, digits and `_`; the metric is called `app_` and the name. */
  export interface AppMetrics {
    /**
     * Creates a counter, which continues when the module is loaded anew.
     * @param help its meaning in one line
     * @param labels the names of its labels. Beyond 100 combinations of their values, all others are `other`
     * @throws TypeError for an invalid name, help or label; Error for a name that another metric has
     */
    counter(name: string, help: string, labels?: readonly string[]): Counter
    /**
     * Creates a gauge. With several processes the metric is the sum of their values.
     * @param read returns the current value: a finite number, at once. Called at each scrape and every five seconds
     * @throws as `counter` does
     */
    gauge(name: string, help: string, read: () => number): void
  }

  /** A counter of `app.metrics`. */
  export interface Counter {
    /**
     * Adds a number.
     * @param by 0 or more; 1 by default
     * @param labels a value for each of its labels, of which the first 200 characters count
     * @throws RangeError for another number; TypeError for missing or unknown labels
     */
    add(by?: number, labels?: Readonly<Record<string, string>>): void
  }

  // ---- jobs ----

  /** The options of `enqueue`. */
  export interface EnqueueOptions {
    /** Seconds after which the job is due. */
    readonly delay_s?: number | undefined
    /** When the job is due: a Date, or ISO 8601 text with a zone. */
    readonly at?: Date | string | undefined
    /** While a job of this name and key waits, no other is added. 1 to 200 characters. */
    readonly key?: string | undefined
  }

  /** The action of a job: `export default (async ({ data }) => { ... }) satisfies Job<{ to: string }>`. */
  export type Job<Data = unknown> = (job: JobContext<Data>) => unknown

  /** The argument of a job's action. Returning ends the job, throwing tries it again. */
  export interface JobContext<Data = unknown>
    extends Pick<SetupApp, 'settings' | 'url' | 'channel' | 'queue' | 'enqueue'> {
    /** What `enqueue` was given; undefined if it was nothing. */
    readonly data: Data
    /** The same for all tries. */
    readonly id: string
    /** The number of this try, from 1. */
    readonly attempt: number
    /** Aborts after `timeout_s`, and when a stop does not wait any longer. */
    readonly signal: AbortSignal
    /** The log of module `app`; each line has the job as a field. */
    readonly log: Logger
  }

  /** Thrown by the action of a job that another try cannot help: the job is dead at once. */
  export class JobFailed extends Error {
    /** @param reason the error of the job, as the panel shows it */
    constructor(reason: string, options?: ErrorOptions)
  }

  // ---- the context ----

  /**
   * `ctx.state`: values that middleware passes on. Add your own names, and `user` and `jwt` if you use the built-in
   * middleware that sets them: `declare module 'svc' { interface State { user: User } }`
   */
  export interface State {
    [name: string]: unknown
  }

  /**
   * `settings` of `svc.json`, checked by the schemas that middleware modules export as `settings`. Declare yours:
   * `declare module 'svc' { interface Settings { mail: { url: string } } }`
   */
  export interface Settings {
    readonly [name: string]: unknown
  }

  /**
   * The routes of the application by name: `svc types` declares them in `svc.routes.d.ts`. Without them every name and
   * every parameter is accepted.
   */
  export interface Routes {}

  /** The name of a route. */
  export type RouteName = keyof Routes extends never ? string : Extract<keyof Routes, string>

  /**
   * The path of a route, for tests and page scripts: of `/notes/:id`, `/notes/${string}`. It does not check that a
   * parameter has no `/`.
   */
  export type RoutePath<Name extends RouteName = RouteName> = MemberOf<Name, 'path'> & string

  /** The methods of a route. */
  export type RouteMethod<Name extends RouteName = RouteName> = MemberOf<Name, 'methods'> & string

  /** A route with its parameters, for `ctx.redirect`. */
  export type RouteTarget<Name extends RouteName = RouteName> = { readonly route: Name } & ({} extends UrlParams<Name>
    ? { readonly params?: UrlParams<Name> }
    : { readonly params: UrlParams<Name> })

  /** The arguments of `ctx.url` after the name: the parameters, which only a route without any may omit. */
  export type UrlArguments<Name extends RouteName> = {} extends UrlParams<Name>
    ? [params?: UrlParams<Name>]
    : [params: UrlParams<Name>]

  type UrlParams<Name extends RouteName> = string extends RouteName
    ? Readonly<Record<string, string | number>>
    : keyof Params<Name> extends never
      ? Readonly<Record<string, never>>
      : { readonly [Parameter in keyof Params<Name>]: string | number }
  type MemberOf<Name, Member extends string> = Name extends keyof Routes
    ? Routes[Name] extends { readonly [M in Member]: infer Value } ? Value : never
    : string
  type RouteOrPattern = string extends RouteName ? string : RouteName | `/${string}`

  /** The parameters of a route or of a pattern by name: of `/notes/:id`, `id`; of `/files/*path`, `path`. */
  export type Params<Route extends string = string> = Route extends keyof Routes
    ? MemberOf<Route, 'params'>
    : string extends Route
      ? { readonly [name: string]: string }
      : { readonly [Name in Names<Route>]: string }

  type Names<Path extends string> = Path extends `${infer Segment}/${infer Rest}`
    ? NameOf<Segment> | Names<Rest>
    : NameOf<Path>
  type NameOf<Segment extends string> = Segment extends `:${infer Name}` | `*${infer Name}` ? Name : never

  /** The context of a request to a route or pattern; without either, every parameter is a string. */
  export type Context<Route extends RouteOrPattern = never> = RequestContext<
    Params<[Route] extends [never] ? string : Route>
  >

  /** A request, for its middleware, action and view. Members may be destructured: `const { json } = ctx`. */
  interface RequestContext<Parameters> {
    /** The method, upper case. */
    readonly method: string
    /** The path: without the query and `server.prefix`, not decoded. */
    readonly path: string
    /**
     * The path below which the client sees the application, such as `/app`; '' for none. Put it before a path that you
     * write yourself: `ctx.redirect(ctx.prefix + '/notes')`. Those of `ctx.url` begin with it.
     */
    readonly prefix: string
    /** The query, decoded. */
    readonly query: URLSearchParams
    /** The query as sent, with its `?`; '' without a query. */
    readonly rawQuery: string
    /** The parameters of the route's pattern, decoded; an object without prototype. */
    readonly params: Parameters
    /** The header fields of the request by lower-case name; an object without prototype. */
    readonly headers: { readonly [name: string]: string | undefined }
    /** The cookies of the request by name, decoded; an object without prototype. */
    readonly cookies: { readonly [name: string]: string | undefined }
    /** The client's address, as reported by trusted proxies if any. */
    readonly ip: string
    /** Whether the client uses TLS, to this server or to a trusted proxy. */
    readonly secure: boolean
    /** The requested host, with its port if given. */
    readonly host: string
    /** `1.0` or `1.1`. */
    readonly httpVersion: string
    /** The request id: the client's if valid, else a new one. Once read, it is sent in the response. */
    readonly id: string
    /** The record of the matched route. */
    readonly route: RouteRecord
    /** Values that middleware passes to later middleware and to the action; an object without prototype. */
    readonly state: State
    /** The settings of the application, the same for all requests; frozen, without prototypes. */
    readonly settings: Readonly<Settings>
    /** Aborts when the client leaves before its response is complete, and when a wait ends without an event. */
    readonly signal: AbortSignal

    /** Reads the body as bytes. The body is kept, so you may call this again; 413 when it is too large. */
    readonly readBytes: () => Promise<Buffer>
    /** Reads the body as text. */
    readonly readText: () => Promise<string>
    /** Reads the body as JSON; 400 when it is not JSON. Check the value yourself. */
    readonly readJson: () => Promise<unknown>
    /** Reads a form, urlencoded or multipart; 415 for any other body. */
    readonly readForm: () => Promise<Form>

    /** Creates schemas for `validate`, and their fields. */
    readonly fields: FieldsBuilder
    /**
     * Checks a form or a JSON body against a schema; unknown members are dropped. A body of another type is 415. Wrong
     * input ends the request: 422 with `errors`, or for a form 303 to its page, whose flash bag then has `errors` and
     * `input`. The bag is `form` by default.
     *
     * With `from: 'query'` it checks the query, and with `'params'` the parameters of the path, both read like a form.
     * A wrong query is 422 and never redirected; a wrong parameter is 404.
     */
    readonly validate: <S extends StandardSchema>(
      schema: S,
      options?: { readonly from?: 'body' | 'query' | 'params'; readonly form?: string },
    ) => Promise<Validated<S>>
    /**
     * Refuses the input as `validate` does, for what only the action can check: 422 with `errors`, or for a form 303 to
     * its page. The errors are texts by path. `validate` or `readForm` must have read the form, else its page does not
     * show the input again.
     */
    readonly invalid: (
      errors: { readonly [path: string]: string | readonly string[] },
      options?: { readonly form?: string },
    ) => never
    /**
     * Returns the input of a field of a refused form, else the fallback. Views call it as `old()`. Of inputs with names
     * such as `lines.0.name` `lines` is the list of rows, of `address.city` `address` is an object.
     */
    readonly old: (field: string, fallback?: unknown, form?: string) => unknown
    /** Returns the error texts of a field of a refused form, or an empty list. Views call it as `errorsOf()`. */
    readonly errorsOf: (field: string, form?: string) => readonly string[]

    /** Replies with JSON. */
    readonly json: (value: unknown, status?: number) => Reply
    /** Replies with HTML, unescaped. */
    readonly html: (text: string, status?: number) => Reply
    /** Replies with plain text. */
    readonly text: (text: string, status?: number) => Reply
    /** Replies with a view; `file` is relative to `paths.root` or to the folder of the action. */
    readonly view: (file: string, data?: object, status?: number) => Reply
    /**
     * Replies with a file, absolute or relative to `paths.root`: with its length and type, ETag, conditions and ranges.
     * A missing file is 404. Use `in` whenever the client has a say in the path. The file is opened after the action
     * has returned.
     */
    readonly file: (path: string, options?: FileOptions) => Reply
    /** Replies with a redirect to a URL, as you wrote it, or a route: 302 by default, or 301, 303, 307 or 308. */
    readonly redirect: <Name extends RouteName>(to: string | RouteTarget<Name>, status?: number) => Reply
    /** Replies without a body, by default with 204. */
    readonly empty: (status?: number) => Reply
    /**
     * Throws an HttpError with a status from 400 to 599. Its message reaches the client if the status is below 500.
     * Code and message default to those of the status: `ctx.fail(404)` is `not_found`.
     *
     * The compiler treats the code after `ctx.fail()` as unreachable only if the type of `ctx` is written out:
     * `(ctx: Context) => ...`. Elsewhere write `return ctx.fail(...)` or `find(id) ?? ctx.fail(...)`.
     */
    readonly fail: (status: number, code?: string, message?: string) => never
    /** The status to send, 200 to 599; 0 until it is set. */
    status: number
    /** The reply so far, or undefined. Middleware reads it after `next()`. */
    readonly reply: Reply | undefined
    /**
     * Sets a header field and replaces earlier ones of that name; a list sets one field per value. A Content-Length is
     * used for a stream, which is cut if it has another length. Throws TypeError for Transfer-Encoding.
     */
    readonly setHeader: (name: string, value: string | number | readonly string[]) => void
    /** Sets a cookie. Attributes override the defaults: path `/`, HttpOnly, SameSite=Lax and, on TLS, Secure. */
    readonly setCookie: (name: string, value: string, attributes?: CookieAttributes) => void
    /**
     * Returns the path of a named route, with the prefix and percent-encoded parameters. Throws if there is no such
     * route, or the parameters are not those of its pattern.
     */
    readonly url: <Name extends RouteName>(name: Name, ...params: UrlArguments<Name>) => string

    /** The session. Its methods throw on a route without `SVC_MwSession`. */
    readonly session: Session
    /** Returns the flash messages of a form id. */
    readonly flash: (id: string) => FlashBag
    /**
     * Signs a user in for `SVC_MwIsAuth`: the session gets the user and a new id, and loses its CSRF token. Streams,
     * polls and WebSockets opened under the old id end.
     * @param user any JSON value that identifies the user: a name, an id, an object. Anything else, such as a promise
     *   that was not awaited, is a TypeError
     */
    readonly signIn: (user: unknown) => void
    /** Ends the session with all its values, and the streams, polls and WebSockets that it opened. */
    readonly signOut: () => void
    /** The user of the session, as passed to `signIn`; undefined if nobody is signed in or the route has no session. */
    readonly user: State['user'] | undefined
    /**
     * Returns the page that the visitor wanted before the sign-in: `next` of the form, if it has been read, else of the
     * query, as `SVC_MwIsAuth` adds it, below the prefix. Anything but a path of this application is replaced by the
     * fallback, `ctx.prefix + '/'` by default.
     */
    readonly returnTo: (fallback?: string) => string
    /** Hashes and checks passwords of users. */
    readonly password: Passwords
    /**
     * The nonce of this response, for `<script nonce>` and `<style nonce>`. The first use adds it to the policy of
     * `SVC_MwHeaders`; '' if that did not run.
     */
    readonly cspNonce: string
    /** The name of `cspNonce` in views. */
    readonly csp_nonce: string
    /** Returns a hidden input with a CSRF token of the kind that this route checks. */
    readonly csrfInput: () => string
    /** The session's CSRF token where `SVC_MwCsrf` ran, else ''. */
    readonly csrf_token: string
    /** Returns a hidden input with a signed, readable id; '' for the id ''. */
    readonly resourceInput: (id: string | number | bigint) => string
    /** Returns the id from that input; '' if it is missing or was not signed here. */
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

    /** Returns the channel with a name: each of its events goes to all waiting clients. */
    readonly channel: (name: string, options?: SourceOptions) => Channel
    /**
     * Adds a job of the job files. Resolves with its id once it is stored; with that of the waiting job if one of this
     * name and `key` waits.
     * @param data any JSON, at most 256 KiB
     * @throws Error, as a rejection, when no job file has the name, and for wrong arguments
     */
    readonly enqueue: (name: string, data?: unknown, options?: EnqueueOptions) => Promise<string>
    /** Returns the queue with a name: each of its events goes to one client. */
    readonly queue: (name: string, options?: SourceOptions) => Queue
    /** Replies when there is an event, or with an empty response after the time-out. */
    readonly longPoll: (source: Channel | Queue, options?: LongPollOptions) => Reply
    /** Replies with a stream of a channel's events (`text/event-stream`). */
    readonly sse: (channel: Channel, options?: SseOptions) => Reply
    /** Replies to a live page: `sse` when `Accept` names `text/event-stream`, else `longPoll`. */
    readonly live: (channel: Channel) => Reply
    /**
     * Makes the client of a stream or WebSocket a member of the channel while it is open, and sends it the members.
     * A member has at most 1 KiB as JSON; connections with the same id are one member.
     */
    readonly presence: (channel: Channel, member: Member) => void
    /** Replies with the result of the work; 204 at the deadline. The signal aborts when the wait ends. */
    readonly hold: (work: (signal: AbortSignal) => unknown, options?: HoldOptions) => Reply

    /** The log of module `app`: `log(message)` is INFO, and it has a method for each level. */
    readonly log: Logger
    /** Returns the log of another module; the application's own names always pass the trace filter. */
    readonly logger: (module: string) => Logger
    /** Logs at level 1, DEBUG. */
    readonly ld: Logger['debug']
    /** Logs at level 2, INFO. */
    readonly l: Logger['info']
    /** Logs at level 3, WARN. */
    readonly lw: Logger['warn']
    /** Logs at level 4, ERROR. */
    readonly le: Logger['error']
    /** Logs at level 5, FATAL; it only writes a line. */
    readonly lf: Logger['fatal']
  }

  /** The record of a route, with the defaults of its file. */
  export interface RouteRecord {
    readonly name: string
    /** The pattern. */
    readonly url: string
    /** The file, relative to `paths.root`, with `@export` for a named export. */
    readonly action: string
    /** `*`, or methods separated by commas: `GET,POST`. */
    readonly method: string
    /** Names separated by commas, or ''. */
    readonly middleware: string
    readonly scope: string
    /** The largest body in KiB; overrides `server.body_limit_kb`. */
    readonly body_limit_kb?: number
    /** The most seconds for a request to arrive; overrides `server.request_timeout_s`. */
    readonly request_timeout_s?: number
    /** The format of its errors; `auto` depends on the client. */
    readonly error_format?: 'json' | 'html' | 'auto'
    /** What the route does, in one line, for the description of the application, as the following fields. */
    readonly summary?: string
    readonly description?: string
    readonly deprecated?: boolean
    /** Whether the route is left out of the description. */
    readonly hidden?: boolean
  }

  /** The result of `ctx.json()` and the other reply methods. Its content is internal. */
  export interface Reply {
    readonly [replyMark]: true
  }
  const replyMark: unique symbol // Exists only for the compiler.

  /** The options of `ctx.file`. */
  export interface FileOptions {
    /**
     * The folder, absolute or relative to `paths.root`, that the file must be in. The path is then relative to it, and
     * a path that leaves it, also by a link, or has a name that begins with a dot, is 404.
     */
    readonly in?: string
    /** Saves the file under this name instead of showing it (`Content-Disposition: attachment`). */
    readonly name?: string
    /** Whether to show a file with a `name`, which is used when it is saved. Default: false. */
    readonly inline?: boolean
    /** The Content-Type. Default: by the ending of the path. */
    readonly type?: string
    /** Seconds for which the browser uses its copy without asking. Default: it asks each time. */
    readonly maxAge_s?: number
  }

  /** The attributes of a cookie. */
  export interface CookieAttributes {
    /** Seconds; 0 or less deletes the cookie. Without `maxAge` and `expires` it ends with the browser. */
    readonly maxAge?: number
    /** Ignored if `maxAge` is set. */
    readonly expires?: Date
    /** Default: `/`. */
    readonly path?: string
    /** Default: only this host. If set, subdomains get the cookie too. */
    readonly domain?: string
    /** Default: true. */
    readonly httpOnly?: boolean
    /** Default: true on TLS. */
    readonly secure?: boolean
    /** Default: `Lax`. `None` needs `secure`. */
    readonly sameSite?: 'Strict' | 'Lax' | 'None' | 'strict' | 'lax' | 'none'
    /** Separates the cookie by the site that embeds this one. Default: false. Needs `secure`. */
    readonly partitioned?: boolean
  }

  /** An error that ends a request with its status. */
  export class HttpError extends Error {
    override readonly name: string
    /** 400 to 599. */
    readonly status: number
    /** A short word for programs; the member `error` of the JSON body. */
    readonly code: string
    /** Header fields of the response. */
    readonly headers: Readonly<Record<string, string>>
    /** The errors of the input, if `ctx.validate` or `ctx.invalid` threw this error. */
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

  /** A parsed form. */
  export interface Form {
    /** The files in the order sent. Empty file inputs are left out. */
    readonly files: readonly FormFile[]
    /** Returns the first value of a name; undefined if it was not sent, like an unchecked checkbox. */
    get(name: string): string | undefined
    /** Returns all values of a name in the order sent. */
    getAll(name: string): string[]
    /** Returns whether a field of this name was sent. Files do not count. */
    has(name: string): boolean
    /** Returns the names, each once. */
    keys(): IterableIterator<string>
    /** Returns name and value of every field. */
    entries(): IterableIterator<[string, string]>
  }

  /** A file of a form: up to 64 KiB in `bytes`, else in the temporary file `path`. */
  export type FormFile = FileInMemory | FileOnDisk

  interface FileFacts {
    /** The name of the input. */
    readonly name: string
    /** The name chosen by the client, without folders and control characters. Do not store the file under it. */
    readonly filename: string
    /** The media type claimed by the client, in lower case. */
    readonly type: string
    /** Bytes. */
    readonly size: number
    /**
     * Moves the file to its place, also to another file system. Under its new name it is complete or missing; its mode
     * is 0640. An existing file is an error unless `replace` is true. Missing folders are created.
     * @param path absolute or relative to `paths.root`
     */
    readonly moveTo: (path: string, options?: { readonly replace?: boolean }) => Promise<void>
  }
  interface FileInMemory extends FileFacts {
    /** The content. */
    readonly bytes: Buffer
    readonly path?: undefined
  }
  interface FileOnDisk extends FileFacts {
    /** A temporary file, deleted when the request ends: move or read it before. */
    readonly path: string
    readonly bytes?: undefined
  }

  // ---- validation ----

  /** A field of a form or of a JSON body. It is immutable: both methods return a new field. */
  export interface Field<T = unknown> {
    /** Returns a field that may be left out or sent empty: its value is undefined then. */
    optional(): Field<T | undefined>
    /** Returns a field with a value for missing or empty input. Throws TypeError if the value is not valid. */
    default(value: Exclude<T, undefined>): Field<Exclude<T, undefined>>
  }

  /** The result of `fields({...})`: a schema for `ctx.validate`. */
  export interface Schema<T = unknown> {
    /**
     * Checks a plain value, such as parsed JSON. The texts of errors are the default ones, in English. A file is valid
     * only in a form.
     */
    check(value: unknown): Checked<T>
    /**
     * Returns a new JSON Schema (2020-12) of the JSON that `check` accepts. White space around texts, flags of patterns
     * and bounds of dates cannot be expressed. In OpenAPI 3.1 leave `$schema` out.
     */
    toJsonSchema(): { [keyword: string]: unknown }
    /** Standard Schema, version 1: `check` for other libraries. Every value of the type is valid input. */
    readonly '~standard': {
      readonly version: 1
      readonly vendor: 'svc'
      readonly validate: (value: unknown) => StandardResult<T>
      readonly types?: { readonly input: T; readonly output: T } | undefined
    }
  }
  type StandardResult<T> =
    | { readonly value: T; readonly issues?: undefined }
    | { readonly issues: readonly { readonly message: string; readonly path: readonly (string | number)[] }[] }

  /** The result of `schema.check`: the values, or error texts by path (`address.city`, `tags.0`; '' for the whole). */
  export type Checked<T = unknown> =
    | { readonly ok: true; readonly value: T }
    | { readonly ok: false; readonly errors: { readonly [path: string]: readonly string[] } }

  /** Fields by name. */
  export interface Definition {
    readonly [name: string]: Field
  }

  /** The values of a definition; values of optional fields may be missing. */
  export type Values<D extends Definition = Definition> = Flat<
    { [Name in RequiredNames<D>]: ValueOf<D[Name]> } & {
      [Name in Exclude<keyof D, RequiredNames<D>>]?: ValueOf<D[Name]>
    }
  >
  type ValueOf<F> = F extends Field<infer T> ? T : never
  type RequiredNames<D> = { [Name in keyof D]: undefined extends ValueOf<D[Name]> ? never : Name }[keyof D]
  type Flat<T> = { [Name in keyof T]: T[Name] }

  /** Inclusive minimum and maximum: of a number, a date, the length of a text, the entries of a list. */
  interface Bounds<T = number> {
    readonly min?: T | undefined
    readonly max?: T | undefined
  }
  interface TextOptions extends Bounds {
    /** Without the flags g, y and v. It sets the default of `max` to 255. */
    readonly pattern?: RegExp | undefined
  }

  /**
   * Creates schemas for `ctx.validate`, and their fields. Every field is required unless it has `.optional()` or
   * `.default(value)`. A wrong definition throws TypeError.
   */
  export interface FieldsBuilder {
    <const D extends Definition>(definition: D): Schema<Values<D>>
    /** Text, trimmed unless `trim` is false. */
    text(options?: TextOptions & { readonly trim?: boolean | undefined }): Field<string>
    /** Text that is not trimmed and never shown again: a password, a code. */
    secret(options?: TextOptions): Field<string>
    /** An address that browsers accept, by default of at most 254 characters. */
    email(options?: TextOptions): Field<string>
    /** An http or https URL, by default of at most 2048 characters. */
    url(options?: TextOptions): Field<string>
    /** An existing day, as the text `YYYY-MM-DD`. */
    date(options?: Bounds<string>): Field<string>
    /** A whole number below 2^53, positive or negative. */
    integer(options?: Bounds): Field<number>
    /** A finite number. */
    number(options?: Bounds): Field<number>
    /** In a form a checkbox: `on`, `true`, `1`, `yes` or `off`, `false`, `0`, `no`; not sent: false. */
    boolean(): Field<boolean>
    /** One of these texts. */
    choice<const Choice extends string>(choices: readonly Choice[]): Field<Choice>
    choice<const Choice extends string>(...choices: readonly Choice[]): Field<Choice>
    /** A list, by default of at most 1000 entries. In a form: several inputs of one name. */
    list<T>(item: Field<T>, options?: Bounds): Field<Exclude<T, undefined>[]>
    /** An object, without prototype. In a form: inputs with names such as `address.city`. */
    object<const D extends Definition>(definition: D): Field<Values<D>>
    /** A file of a multipart form. The client chooses its type; `image/*` excludes `image/svg+xml`. */
    file(options?: {
      readonly types?: readonly string[] | undefined
      readonly maxKb?: number | undefined
    }): Field<FormFile>
  }

  /** Creates schemas for `ctx.validate`, and their fields. */
  export const fields: FieldsBuilder

  /** A schema of another library: Standard Schema, version 1 (https://standardschema.dev). */
  export interface StandardSchema {
    readonly '~standard': {
      readonly version: 1
      readonly validate: (value: unknown) => unknown
      readonly types?: { readonly input: unknown; readonly output: unknown } | undefined
    }
  }

  /**
   * An action whose input is checked before it runs, as `ctx.validate` checks it: parameters, then the query, then the
   * body. `svc openapi` describes it. A wrong declaration throws TypeError.
   */
  export function action<const S extends ActionSchemas>(
    schemas: S,
    run: (ctx: Context, input: ActionInput<S>) => unknown,
  ): ((ctx: Context) => unknown) & { readonly schemas: S }

  /** What an action declares. */
  export interface ActionSchemas {
    readonly body?: StandardSchema
    readonly query?: StandardSchema
    readonly params?: StandardSchema
    /** The flash bag of a refused form. Default: `form`. */
    readonly form?: string
    /**
     * The content of its replies, for the description only: of a 200, or by status, null for a reply without content.
     */
    readonly answer?: ReplyContent | { readonly [status: number]: ReplyContent | null }
    /** One line. `summary` and `description` of the route take precedence. */
    readonly summary?: string
    readonly description?: string
  }
  type ReplyContent = StandardSchema | Field

  /** The checked input of an action; a part without a schema is undefined. */
  export type ActionInput<S extends ActionSchemas> = {
    readonly [Part in 'body' | 'query' | 'params']: S extends { readonly [P in Part]: infer Schema }
      ? Validated<Schema>
      : undefined
  }

  /** The values that a schema returns. */
  export type Validated<S = Schema> = S extends StandardSchema ? NonNullable<S['~standard']['types']>['output'] : never

  /** The errors in the input of a request: the member `invalid` of an HttpError 422. */
  export interface InvalidInput {
    /** Error texts by path (`address.city`, `tags.0`; '' for the whole). */
    readonly errors: { readonly [path: string]: readonly string[] }
    /** The input of a form, without secrets; empty for JSON. */
    readonly input: { readonly [name: string]: unknown }
  }

  // ---- sessions ----

  /**
   * Typed values of a session: `declare module 'svc' { interface SessionValues { cart: Item[] } }`. Other keys hold
   * unknown values.
   */
  export interface SessionValues {}

  /** `ctx.session`: data that the server keeps for one visitor. */
  export interface Session {
    /** Returns a copy of the value, or undefined. */
    get<Key extends keyof SessionValues>(key: Key): SessionValues[Key] | undefined
    /** Returns a copy of the value, else the fallback. */
    get<Key extends keyof SessionValues>(key: Key, fallback: SessionValues[Key]): SessionValues[Key]
    /** Returns a copy of the value, else the fallback, which should have the same type. */
    get<Value>(key: string, fallback: Value): Widened<Value>
    get(key: string): unknown
    /** Sets a value that JSON can hold, at any depth. Anything else, such as a Map or NaN, is a TypeError. */
    set<Key extends string>(key: Key, value: Key extends keyof SessionValues ? SessionValues[Key] : unknown): void
    /** Returns whether the key exists. */
    has(key: string): boolean
    /** Removes a key. */
    delete(key: string): void
    /** Saves now; only needed for values set after the response. */
    save(): Promise<void>
    /** Ends the session and its open connections when it is saved. `ctx.signOut()` calls it. */
    destroy(): void
    /** Sets a new id when the session is saved; the values stay, except the CSRF token. `ctx.signIn()` calls it. */
    regenerate(): void
  }

  /** The general type of a fallback: number for `0`. */
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
    /** Sets a value that JSON can hold, else a TypeError. */
    set(key: string, value: unknown): void
    /** Sets each member; other keys stay. */
    set(values: object): void
    /** Returns a value and removes it. */
    get(key: string): unknown
    /** Returns a value and removes it, or returns the fallback. */
    get<Value>(key: string, fallback: Value): Widened<Value>
    /** Returns whether a value exists, without removing it. */
    has(key: string): boolean
    /** Removes a value unread. */
    delete(key: string): void
    /** Empties the bag. */
    clear(): void
    /** No-op: each change is in the session at once. */
    save(): void
    /** Returns the form id. */
    getId(): string
  }

  /** `ctx.password`: a process computes two hashes at a time, up to 100 calls wait, and more are 503. */
  export interface Passwords {
    /** Returns the text to store for a password. 422 for a password of more than 1,024 bytes. */
    hash(password: string): Promise<string>
    /**
     * Returns whether a password matches a stored hash, and whether the hash should be renewed: it is weaker than new
     * hashes, or was made from text that is not in Unicode normal form C.
     * @param stored undefined, for an unknown user, takes as long and never matches; a text that is not a hash throws
     */
    verify(password: string, stored: string | undefined): Promise<{ readonly ok: boolean; readonly stale: boolean }>
  }

  // ---- events and WebSockets ----

  /** A channel: each event goes to all clients. */
  export interface Channel {
    readonly name: string
    /** Publishes a JSON value, else TypeError. Returns the id of the event, with several processes as a promise. */
    publish(value: unknown): number | Promise<number>
    /** Calls a function with each event from now on. Returns a function that unsubscribes. */
    subscribe(listener: (event: { readonly id: number; readonly data: unknown }) => unknown): () => void
    /** The id of the newest event, with several processes as a promise. */
    readonly last_id: number | Promise<number>
  }

  /** A queue: each event goes to one client, and is kept until a client requests it. */
  export interface Queue {
    readonly name: string
    /** Appends a JSON value, else a TypeError. */
    push(value: unknown): void | Promise<void>
    /**
     * Reports that the work of an event is done. Resolves with whether its lease was still valid; if not, another
     * client has the event, or gets it.
     * @param lease from the answer of a long poll with `lease_s`
     */
    done(lease: string): Promise<boolean>
    /** Gives an event back, which the next client gets. Resolves as `done` does. */
    back(lease: string): Promise<boolean>
  }

  /** A member of a channel, as an action passes it to `ctx.presence`. */
  export interface Member {
    readonly id: string | number
    readonly [name: string]: unknown
  }

  /** How much a channel or queue keeps, set at its first use. */
  export interface SourceOptions {
    /** Events, 1 to 1,000,000. Default: 1000. */
    readonly events?: number
    /** Seconds. Default: 3600. */
    readonly age_s?: number
    /**
     * Whether `publish` and `push` resolve only when the event is stored, so that it outlives the end of the server.
     * Default: false.
     */
    readonly durable?: boolean
  }

  /** The options of `ctx.longPoll`. */
  export interface LongPollOptions {
    /** Seconds until the empty response. Default: 30. */
    readonly timeout_s?: number
    /** For a queue `simple`, the default, or `typed`; for a channel `cursor`. */
    readonly form?: 'simple' | 'typed' | 'cursor'
    /**
     * For a queue: the seconds in which the client must report an event as done, above 0 and at most 86,400; then the
     * next client gets it. The answer has a member `lease` for `queue.done`. Default: an event that was sent is gone.
     */
    readonly lease_s?: number
  }

  /** The options of `ctx.sse`. */
  export interface SseOptions {
    /** Milliseconds until a browser reconnects. Default: 2000. */
    readonly retry_ms?: number
    /** Seconds until the stream ends. Default: `pool_rest.stream_timeout_s`. */
    readonly timeout_s?: number
  }

  /** The options of `ctx.hold`. */
  export interface HoldOptions {
    /** Seconds. Default: `pool_rest.stream_timeout_s`. */
    readonly timeout_s?: number
  }

  /** The export `websocket` of a module. Each member is optional, and each function may be async. */
  export interface WebSocketHandlers<Route extends RouteOrPattern = never> {
    /** The subprotocols of the server; it chooses the first that the client also offers. Default: none. */
    readonly protocols?: readonly string[]
    /** Called first; no message is read before it has finished. */
    open?(ws: WebSocketConnection, ctx: Context<Route>): unknown
    /** Called with each message: text as a string, bytes as a Buffer. */
    message?(ws: WebSocketConnection, data: string | Buffer): unknown
    /** Called at the end. 1005: the peer sent no code; 1006: no closing handshake. */
    close?(ws: WebSocketConnection, code: number, reason: string): unknown
  }

  /** `ws.state`. Add your own names: `declare module 'svc' { interface SocketState { user: string } }` */
  export interface SocketState {
    [name: string]: unknown
  }

  /** A WebSocket connection, for the handlers. */
  export interface WebSocketConnection {
    /** Whether messages can be sent. */
    readonly isOpen: boolean
    /** The subprotocol chosen from `protocols`, or ''. */
    readonly protocol: string
    /** Bytes buffered because the peer does not read fast enough. */
    readonly bufferedAmount: number
    /** Values of the handlers for this connection; an object without prototype. */
    readonly state: SocketState
    /** Sends a string as text, bytes as binary. Returns false if the connection is not open, or is closed now. */
    send(data: string | NodeJS.ArrayBufferView): boolean
    /**
     * Sends the events of a channel as text, `{"event": "message", "id", "data"}`, and `{"event": "gap", "data":
     * {"last_id"}}` if some are missing: after `since`, the id of the last event that the client has, or from now on.
     */
    follow(channel: Channel, options?: { readonly since?: number | string | null | undefined }): void
    /** Starts the closing handshake, by default with code 1000. */
    close(code?: number, reason?: string): void
    /** Closes the connection at once, without a handshake. */
    terminate(): void
  }

  // ---- logs ----

  /** Fields of a log line besides its message; in text appended as ` key=value`. */
  export type LogFields = Readonly<Record<string, unknown>>

  /** The log of a module. Calling it writes an INFO line. */
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
    /** The keys of `svc.json`, nested or dotted; missing keys have their default. */
    readonly config?: Readonly<Record<string, unknown>>
    /** The base of relative paths. Default: the working directory. */
    readonly folder?: string
    /** Overrides `app_key` of the configuration. */
    readonly appKey?: string
    /** The file that setup saves the admin's credentials to; without it setup is refused. */
    readonly configFile?: string
    /** Whether the server applies saved files in `dev`. Default: false. */
    readonly watch?: boolean
    /** Called when any stop begins. */
    readonly onStop?: () => void
  }

  /** A server. It never changes the surrounding process. */
  export interface App extends SetupApp {
    /** Loads the application and listens. If it rejects with an error, call `stop`. */
    start(): Promise<{ readonly host: string; readonly port: number; readonly url: string }>
    /**
     * Sends a request without a port, for tests. It takes the arguments of `fetch`, and paths; redirects are not
     * followed. With `https:` the request is secure.
     */
    request(input: string | URL | Request, init?: RequestInit): Promise<Response>
    /** Returns the warnings that `/svc-status` shows. */
    warnings(): readonly string[]
    /** Stops gracefully, as SIGTERM does. Resolves when everything is closed. */
    stop(): Promise<void>
    /** Writes and closes the logs; call it last. */
    closeLogs(): void
  }

  /**
   * Loads the application of a folder for its tests: with its `svc.json`, without its local file, in `prod`, with a key
   * of its own. Everything that it writes is in a temporary folder. It has no port and no console.
   * @param folder the folder of `svc.json`, also as a URL: `new URL('..', import.meta.url)`
   */
  export function testApp(folder: string | URL, options?: TestAppOptions): Promise<TestApp>

  /** The options of `testApp`, merged over `svc.json`. */
  export interface TestAppOptions {
    /** The keys of `svc.json`, nested or dotted. */
    readonly config?: Readonly<Record<string, unknown>>
    /** Settings of the built-in middleware. */
    readonly setup?: Readonly<Record<string, unknown>>
    /** Settings of the application, such as values in place of secrets. */
    readonly settings?: Readonly<Record<string, unknown>>
  }

  /** An application under test. */
  export interface TestApp extends App {
    /** Creates a client with its own cookies. */
    client(): TestClient
    /** Its jobs. Those that are due have run when a request of a client, or `enqueue`, resolves. */
    readonly jobs: TestJobs
    /** Stops the application and removes everything that it has written. */
    close(): Promise<void>
  }

  /** The jobs of an application under test. Their clock stands still. */
  export interface TestJobs {
    /** Moves the clock, and runs the jobs that are then due: those with a delay, further tries, schedules. */
    advance(seconds: number): Promise<void>
    /** Resolves when no job runs and none is due. */
    idle(): Promise<void>
    /** Returns the jobs that wait, run or are dead. */
    list(): Promise<readonly TestJob[]>
  }

  /** A job that has not ended. */
  export interface TestJob {
    readonly id: string
    readonly name: string
    readonly state: 'waiting' | 'running' | 'dead'
    /** The number of its next, its running or its last try. */
    readonly attempt: number
    /** When it is due, or has died, in milliseconds since 1970. */
    readonly at: number
    readonly key: string | null
    /** The last error; '' if it has not failed. */
    readonly error: string
  }

  /** A client of an application under test. It keeps cookies and, like a browser, sends `Origin` and `Referer`. */
  export interface TestClient {
    get(path: string, options?: TestRequest): Promise<Response>
    post(path: string, options?: TestRequest): Promise<Response>
    put(path: string, options?: TestRequest): Promise<Response>
    patch(path: string, options?: TestRequest): Promise<Response>
    delete(path: string, options?: TestRequest): Promise<Response>
    /** Signs in a user, as `ctx.signIn` does in an action. */
    signIn(user: unknown): Promise<void>
    /** Ends the session, as `ctx.signOut` does. */
    signOut(): Promise<void>
    /** Opens a stream of server-sent events. Rejects if the response is not a stream of events. */
    events(path: string, options?: TestRequest): Promise<TestEvents>
  }

  /** A request of a client: one of `json`, `body`, and `form` with `files`. */
  export interface TestRequest {
    /** The fields: a list is several values of one name, an object has names such as `lines.0.name`. */
    readonly form?: object
    /** The value of a JSON body. The client then accepts JSON. */
    readonly json?: unknown
    /** The files by the names of their inputs; the form is multipart. */
    readonly files?: Readonly<Record<string, TestFile | readonly TestFile[]>>
    /** Any other body of `fetch`. */
    readonly body?: RequestInit['body']
    readonly headers?: Readonly<Record<string, string>>
    /** Whether to send the CSRF token that the route checks. Default: true. */
    readonly csrf?: boolean
    /** Whether to follow redirects. Default: false. */
    readonly follow?: boolean
  }

  /** A file of a form. */
  export type TestFile =
    | File
    | { readonly filename: string; readonly content: string | Uint8Array; readonly type?: string }

  /** A stream of server-sent events. */
  export interface TestEvents extends AsyncIterable<TestEvent> {
    readonly response: Response
    /** Waits for the next event; undefined when the server has ended the stream. */
    next(): Promise<TestEvent | undefined>
    /** Disconnects. */
    close(): Promise<void>
  }

  /** An event. */
  export interface TestEvent {
    /** The id of the last event that has one; '' before the first. */
    readonly id: string
    /** `message` unless the server has named it. */
    readonly event: string
    /** The data as JSON; as text if it is no JSON. */
    readonly data: unknown
  }

  /** Thrown by `createApp`: the configuration is invalid. */
  export class ConfigError extends Error {
    private constructor()
    readonly problems: readonly string[]
  }

  /** Rejection of `start`: the middleware, or its `config.json`, cannot be loaded. */
  export class MiddlewareError extends Error {
    private constructor()
    readonly file: string
  }

  /** Rejection of `start`: route files or modules are invalid. */
  export class ReloadError extends Error {
    private constructor()
    readonly problems: readonly { readonly file: string; readonly name: string; readonly error: string }[]
  }
}

// The browser's half of `ctx.live`, for page scripts. TypeScript accepts a name that begins with `/` only as a pattern.
declare module '*/svc-live.js' {
  /**
   * Follows a channel. Calls the functions one at a time, each after the previous one's promise has settled.
   */
  export function live<Data = unknown>(url: string | URL, options?: LiveOptions<Data>): Live

  /**
   * Opens a WebSocket to a path of this site, and opens it again whenever it ends. Calls the functions as `live` does.
   * `?since=` of the path is the cursor: pass it to `ws.follow`.
   */
  export function socket<Data = unknown>(url: string | URL, options?: SocketOptions<Data>): Socket

  /** The state of a live page. */
  export type LiveState = 'connecting' | 'open' | 'waiting' | 'hidden' | 'offline' | 'refused' | 'closed'

  /** The options that `live` and `socket` share. */
  export interface FollowOptions<Data = unknown> {
    /** Called with each event, once, in order. */
    readonly onEvent?: (data: Data, event: { readonly id: number }) => unknown
    /** Called when events are missing: read the page's data again. Events up to `last_id` are not delivered again. */
    readonly onGap?: (gap: { readonly last_id: number }) => unknown
    /** Called with all members (`ctx.presence`) when one joins or leaves. */
    readonly onPresence?: (members: readonly LiveMember[]) => unknown
    readonly onState?: (state: LiveState) => unknown
    /** The id of the last event that the page shows already. Default: start with the next event. */
    readonly since?: number | string | undefined
  }

  /** The options of `live`. */
  export interface LiveOptions<Data = unknown> extends FollowOptions<Data> {
    /** Default: `auto`, a stream, or polls if a proxy buffers streams. */
    readonly transport?: 'auto' | 'sse' | 'poll'
    /** Whether tabs with this URL and `as` share one connection. Default: true. */
    readonly shared?: boolean
    /** The page's user: tabs of different users share nothing. */
    readonly as?: string
    /** Whether the cursor survives a reload of the page, in `sessionStorage`. */
    readonly remember?: boolean
  }

  /** The options of `socket`. */
  export interface SocketOptions<Data = unknown> extends FollowOptions<Data> {
    /** Called with each message that is not one of `ws.follow` or `ctx.presence`. */
    readonly onMessage?: (data: string | ArrayBuffer) => unknown
  }

  /** A member, as passed to `ctx.presence`. */
  export interface LiveMember {
    readonly id: string | number
    readonly [name: string]: unknown
  }

  /** A followed channel. */
  export interface Live {
    /** Ends it; no function is called afterwards. */
    close(): void
    readonly state: LiveState
    /** The id up to which the page has got all events; undefined before the first. */
    readonly lastId: number | undefined
  }

  /** A WebSocket that is opened again whenever it ends. */
  export interface Socket extends Live {
    /** Sends text or bytes. Returns false when it is not open. Throws a TypeError for anything else. */
    send(data: string | ArrayBuffer | ArrayBufferView): boolean
  }
}
