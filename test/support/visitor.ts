import { request, type Answer } from './request.ts'

export type Fields = Readonly<Record<string, string>>

/** A form of a page: its action, method and hidden fields. */
export interface PageForm {
  readonly action: string
  readonly multipart: boolean
  readonly hidden: Fields
}

const sameOrigin: Fields = { 'sec-fetch-site': 'same-origin' }

/** A visitor of the demo application: keeps cookies and sends forms as a browser does, without following redirects. */
export class Visitor {
  readonly url: string
  /** The cookies, by name. Cookies added here are sent. */
  readonly cookies = new Map<string, string>()

  constructor(url: string) {
    this.url = url
  }

  /** Requests a page. */
  get(path: string, headers: Fields = {}): Promise<Answer> {
    return this.#ask(path, { headers })
  }

  /** Follows a redirect. */
  follow({ headers: { location = '' } }: Answer): Promise<Answer> {
    return this.get(location)
  }

  /** Reads the form of a page that is sent to `action`. */
  async form(page: string, action: string): Promise<PageForm> {
    const { text } = await this.get(page)
    for (const [, attributes = '', content = ''] of text.matchAll(/<form([^>]*)>(.*?)<\/form>/gs)) {
      if ((/ action="([^"]*)"/.exec(attributes)?.[1] ?? page) !== action) continue
      const inputs = content.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)
      const hidden = Object.fromEntries([...inputs].map(([, name = '', value = '']) => [name, value]))
      return { action, multipart: attributes.includes('multipart/form-data'), hidden }
    }
    throw new Error(`${page} has no form for ${action}: ${text}`)
  }

  /** Sends a form. Values in `fields` replace hidden fields. A multipart form has one file, by default `picture`. */
  async send(form: PageForm, fields: Fields = {}, file?: File, headers: Fields = sameOrigin, input = 'picture'): Promise<Answer> {
    const all = { ...form.hidden, ...fields }
    const body = form.multipart ? new FormData() : new URLSearchParams()
    for (const [name, value] of Object.entries(all)) body.set(name, value)
    if (body instanceof FormData) body.set(input, file ?? new File([], ''))
    const encoded = new Response(body)
    const type = encoded.headers.get('content-type') ?? ''
    const bytes = new Uint8Array(await encoded.arrayBuffer())
    return this.#ask(form.action, { headers: { 'content-type': type, ...headers }, body: bytes })
  }

  /** Opens a page and sends its form for `action`. */
  async submit(page: string, action: string, fields: Fields = {}, picture?: File): Promise<Answer> {
    const headers = { ...sameOrigin, referer: this.url + page }
    return this.send(await this.form(page, action), fields, picture, headers)
  }

  /** Signs up under a name, with the password `password of NAME`, and is signed in then. */
  signUp(name: string): Promise<Answer> {
    const password = `password of ${name}`
    return this.submit('/sign-up', '/sign-up', { name, password, password2: password })
  }

  /** Puts up a notice. */
  add(text: string, picture?: File): Promise<Answer> {
    return this.submit('/', '/notices', { text }, picture)
  }

  async #ask(path: string, question: { headers: Fields; body?: Uint8Array }): Promise<Answer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { ...question.headers, ...(cookie === '' ? {} : { cookie }) }
    const answer = await request(this.url + path, { ...question, headers })
    for (const field of answer.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(field) ?? []
      if (/; *max-age=0(?:;|$)/i.test(field)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return answer
  }
}

/** A visitor who has signed up under a name. */
export async function signedUp(url: string, name: string): Promise<Visitor> {
  const visitor = new Visitor(url)
  const answer = await visitor.signUp(name)
  if (answer.status !== 303 || answer.headers.location !== '/') throw new Error(`Cannot sign up: ${answer.text}`)
  await visitor.follow(answer)
  return visitor
}

/** The messages of a page, as `type: text`, and the errors in its forms. */
export function saidBy({ text }: Answer): { messages: string[]; errors: string[] } {
  const messages = text.matchAll(/<p class="message (\w+)"[^>]*>([^<]*)<\/p>/g)
  const errors = text.matchAll(/<small class="error">([^<]+)</g)
  return {
    messages: [...messages].map(([, type = '', said = '']) => `${type}: ${said}`),
    errors: [...errors].map(([, said = '']) => said),
  }
}

/** The visible part of a page: without the template of its script and hidden elements. */
export function shownOf({ text }: Answer): string {
  return text.replace(/<template[^]*?<\/template>|<p [^>]*\bhidden>[^]*?<\/p>/g, '')
}
