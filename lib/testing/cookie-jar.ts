/** The cookies of a client under test: those that a browser would send back to the same host. */

interface Cookie {
  readonly value: string
  readonly path: string
  readonly isSecure: boolean
  /** Milliseconds since 1970; Infinity for the session of the browser. */
  readonly expiresAtMs: number
}

/** Cookies by name and path. */
export class CookieJar {
  readonly #cookies = new Map<string, Cookie>()

  /**
   * Keeps the cookies of a response.
   * @param lines its `Set-Cookie` fields
   */
  accept(lines: readonly string[]): void {
    for (const line of lines) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
      const equals = pair.indexOf('=')
      const valueOf = (name: string): string | undefined => {
        const found = attributes.findLast((attribute) => attribute.toLowerCase().startsWith(`${name}=`))
        return found?.slice(name.length + 1)
      }
      const path = valueOf('path') ?? '/'
      const maxAge = valueOf('max-age')
      const expires = valueOf('expires')
      const expiresAtMs = maxAge !== undefined
        ? Date.now() + Number(maxAge) * 1000
        : expires === undefined ? Infinity : Date.parse(expires)
      const isSecure = attributes.some((attribute) => attribute.toLowerCase() === 'secure')
      const cookie = { value: pair.slice(equals + 1), path, isSecure, expiresAtMs }
      this.#cookies.set(`${pair.slice(0, equals)};${path}`, cookie)
    }
  }

  /** Returns the Cookie field for a request; '' for none. */
  fieldFor({ pathname, protocol }: URL): string {
    const now = Date.now()
    return [...this.#cookies]
      .filter(([, { path, isSecure, expiresAtMs }]) => {
        const isBelow = pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`)
        return isBelow && expiresAtMs > now && (!isSecure || protocol === 'https:')
      })
      .map(([key, { value }]) => `${key.slice(0, key.lastIndexOf(';'))}=${value}`)
      .join('; ')
  }
}
