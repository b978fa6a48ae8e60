/**
 * A client of an application under test. It behaves like a browser: it keeps cookies, sends `Origin` and `Referer`, and
 * the CSRF token that the route checks.
 */
import type { TestFile, TestRequest } from 'svc'
import { pathBelow } from '../http/prefix.ts'
import { CookieJar } from './cookie-jar.ts'
import { EventStream } from './event-stream.ts'

/** The parts of an application that its clients use. */
export interface TestHost {
  /** Sends a request without a port; does not follow redirects. */
  readonly request: (url: URL, init: RequestInit) => Promise<Response>
  /** The path of the route that creates the kind of CSRF token which a request needs; undefined if it needs none. */
  readonly tokenPathFor: (method: string, path: string) => string | undefined
  /** The header field of the token. */
  readonly tokenField: () => string
  /** `server.prefix`, below which clients send their requests; '' for none. */
  readonly prefix: string
  readonly signInPath: string
  readonly signOutPath: string
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

const base = 'http://localhost'
const maxRedirects = 20
const knownOptions = ['form', 'json', 'files', 'body', 'headers', 'csrf', 'follow']

/** A client. Its methods return the response as soon as its header section has arrived. */
export class TestClient {
  readonly #host: TestHost
  readonly #cookies = new CookieJar()
  /** The address of the last page, for `Referer`. */
  #page: string | undefined = undefined

  /** Called by `client()` of the application. */
  constructor(host: TestHost) {
    this.#host = host
  }

  readonly get = (path: string, options?: TestRequest): Promise<Response> => this.#send('GET', path, options)
  readonly post = (path: string, options?: TestRequest): Promise<Response> => this.#send('POST', path, options)
  readonly put = (path: string, options?: TestRequest): Promise<Response> => this.#send('PUT', path, options)
  readonly patch = (path: string, options?: TestRequest): Promise<Response> => this.#send('PATCH', path, options)
  readonly delete = (path: string, options?: TestRequest): Promise<Response> => this.#send('DELETE', path, options)

  /** Signs in a user, as `ctx.signIn` does in an action. */
  readonly signIn = async (user: unknown): Promise<void> => {
    await this.#sendDone(this.#host.signInPath, { json: { user } })
  }

  /** Ends the session, as `ctx.signOut` does. */
  readonly signOut = async (): Promise<void> => {
    await this.#sendDone(this.#host.signOutPath, {})
  }

  /** Opens a stream of server-sent events. Rejects if the response is not a stream of events. */
  readonly events = async (path: string, options: TestRequest = {}): Promise<EventStream> => {
    const headers = { accept: 'text/event-stream', ...options.headers }
    const response = await this.#send('GET', path, { ...options, headers })
    const type = response.headers.get('content-type') ?? ''
    if (response.status === 200 && type.startsWith('text/event-stream')) return new EventStream(response)
    throw new Error(`${path} is not a stream of events: it is ${response.status} ${type}: ${await response.text()}`)
  }

  async #sendDone(path: string, options: TestRequest): Promise<void> {
    const response = await this.#send('POST', path, { ...options, csrf: false })
    if (!response.ok) throw new Error(`The application answered ${response.status}: ${await response.text()}`)
  }

  async #send(method: Method, path: string, options: TestRequest = {}): Promise<Response> {
    const unknown = Object.keys(options).find((name) => !knownOptions.includes(name))
    if (unknown !== undefined) {
      const known = knownOptions.join(', ')
      throw new TypeError(`Cannot send a request: there is no option "${unknown}": there are ${known}`)
    }
    let url = this.#address(path, base)
    let response = await this.#sendOnce(method, url, options, bodyOf(options))
    for (let count = 0; options.follow === true && isRedirect(response); count += 1) {
      if (count === maxRedirects) throw new Error(`${path} redirects more than ${maxRedirects} times`)
      await response.body?.cancel()
      url = new URL(response.headers.get('location') ?? '', url)
      const keepsMethod = response.status === 307 || response.status === 308
      const { headers } = options
      response = await this.#sendOnce(
        keepsMethod ? method : 'GET',
        url,
        keepsMethod ? options : { ...(headers && { headers }) },
        keepsMethod ? bodyOf(options) : undefined,
      )
    }
    return response
  }

  async #sendOnce(
    method: Method,
    url: URL,
    { json, csrf = true, headers: given = {} }: TestRequest,
    body: RequestInit['body'],
  ): Promise<Response> {
    const headers = new Headers()
    if (json !== undefined) headers.set('content-type', 'application/json')
    if (json !== undefined) headers.set('accept', 'application/json')
    if (this.#page !== undefined) headers.set('referer', this.#page)
    if (method !== 'GET') headers.set('origin', url.origin)
    const tokenPath = csrf ? this.#host.tokenPathFor(method, url.pathname) : undefined
    if (tokenPath !== undefined) headers.set(this.#host.tokenField(), await this.#token(this.#address(tokenPath, url)))
    const cookie = this.#cookies.fieldFor(url)
    if (cookie !== '') headers.set('cookie', cookie)
    for (const [name, value] of Object.entries(given)) headers.set(name, value)
    const response = await this.#host.request(url, { method, headers, ...(body !== undefined && { body }) })
    this.#cookies.accept(response.headers.getSetCookie())
    const type = response.headers.get('content-type') ?? ''
    if (method === 'GET' && response.ok && type.startsWith('text/html')) this.#page = url.href
    return response
  }

  /** Completes a path, which may be written without the prefix. */
  #address(path: string, from: string | URL): URL {
    const { prefix } = this.#host
    const url = new URL(path, from)
    if (pathBelow(prefix, url.pathname) === url.pathname) url.pathname = prefix + url.pathname
    return url
  }

  async #token(url: URL): Promise<string> {
    const headers = { cookie: this.#cookies.fieldFor(url) }
    const response = await this.#host.request(url, { method: 'GET', headers })
    this.#cookies.accept(response.headers.getSetCookie())
    return await response.text()
  }
}

function isRedirect({ status, headers }: Response): boolean {
  return [301, 302, 303, 307, 308].includes(status) && headers.has('location')
}

/** @throws TypeError when there are several bodies */
function bodyOf({ form, json, files, body }: TestRequest): RequestInit['body'] {
  const given = [json, body, form ?? files].filter((one) => one !== undefined)
  if (given.length > 1) throw new TypeError('Cannot send a request: give it one of json, body, and form with files')
  if (json !== undefined) return JSON.stringify(json)
  if (files === undefined) return form === undefined ? body : new URLSearchParams(pairsOf(form))
  const data = new FormData()
  for (const [name, value] of pairsOf(form ?? {})) data.append(name, value)
  for (const [name, value] of Object.entries(files)) {
    for (const file of Array.isArray(value) ? value : [value]) data.append(name, fileOf(file))
  }
  return data
}

/**
 * Returns the names and values of a form: `lines.0.name` for the members of an object in a list, several values of one
 * name for a list of texts. A member that is undefined is left out, as an input that is not ticked.
 */
function pairsOf(value: unknown, name = ''): [string, string][] {
  if (value === undefined) return []
  if (Array.isArray(value)) {
    return value.flatMap((item, at) => pairsOf(item, typeof item === 'object' ? `${name}.${at}` : name))
  }
  if (typeof value !== 'object' || value === null) return [[name, String(value)]]
  return Object.entries(value).flatMap(([key, member]) => pairsOf(member, name === '' ? key : `${name}.${key}`))
}

function fileOf(file: TestFile): File {
  if (file instanceof File) return file
  const { filename, content, type = '' } = file
  return new File([content as string], filename, { type }) // Or bytes, which it takes too.
}
