/**
 * Runs the `curl` lines of the documents without curl, which a machine need not have. It knows the options that the
 * documents use (-s -i -X -H -d -F) and refuses every other.
 */
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { basename, join } from 'node:path'

interface Call {
  url: string
  method: string | undefined
  head: boolean
  readonly headers: Record<string, string>
  readonly data: string[]
  readonly form: FormData
}

/**
 * Runs one line and returns what curl would print.
 * @param line `curl ...`, with quotes as for a shell
 * @param place `origin`: what takes the place of `http://localhost:PORT`; `folder`: where `@files` lie
 */
export async function curl(line: string, place: { origin: string; folder: string }): Promise<string> {
  const call = parse(words(line), place.folder)
  const url = call.url.replace(/^http:\/\/localhost:\d+/, place.origin)
  const form = [...call.form.keys()].length === 0 ? undefined : new Response(call.form)
  const body = form === undefined ? call.data.join('&') : Buffer.from(await form.arrayBuffer())
  const type = form?.headers.get('content-type') ?? (body.length > 0 ? 'application/x-www-form-urlencoded' : undefined)
  const method = call.method ?? (body.length > 0 ? 'POST' : 'GET')
  const given = type === undefined ? {} : { 'content-type': type, 'content-length': String(body.length) }
  const headers = { accept: '*/*', ...given, ...call.headers }
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (response) => {
      let text = call.head ? `HTTP/1.1 ${response.statusCode} ${response.statusMessage}\n` : ''
      if (call.head) text += fieldsOf(response.rawHeaders)
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve(text))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

function fieldsOf(raw: readonly string[]): string {
  let text = ''
  for (let at = 0; at < raw.length; at += 2) text += `${raw[at]}: ${raw[at + 1]}\n`
  return `${text}\n`
}

/** Takes a command line apart: blanks between words, '...' and "..." as they are. */
function words(line: string): string[] {
  const found = line.matchAll(/(?:[^\s'"]|'[^']*'|"[^"]*")+/g)
  return [...found].map(([word]) => word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'))
}

function parse([program, ...rest]: string[], folder: string): Call {
  if (program !== 'curl') throw new Error(`A tested line begins with curl: it is ${program}`)
  const call: Call = { url: '', method: undefined, head: false, headers: {}, data: [], form: new FormData() }
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '-s' || word === '-i' || word === '-si') call.head ||= word.includes('i')
    else if (word === '-X') call.method = rest.shift()
    else if (word === '-H') addHeader(call, rest.shift() ?? '')
    else if (word === '-d') call.data.push(rest.shift() ?? '')
    else if (word === '-F') addPart(call, rest.shift() ?? '', folder)
    else if (/^http:\/\/localhost:\d+/.test(word) && call.url === '') call.url = word
    else throw new Error(`This curl does not know ${word}`)
  }
  return call
}

function addHeader(call: Call, field: string): void {
  const [name = '', value = ''] = field.split(/: */, 2)
  call.headers[name.toLowerCase()] = value
}

function addPart(call: Call, part: string, folder: string): void {
  const [name = '', value = ''] = part.split(/=(.*)/s, 2)
  if (!value.startsWith('@')) return call.form.append(name, value)
  const bytes = readFileSync(join(folder, value.slice(1)))
  call.form.append(name, new Blob([bytes], { type: 'application/octet-stream' }), basename(value))
}
