/**
 * Runs the `curl` lines of the documents without curl, which a machine need not have. It knows the options that the
 * documents use (-s -i -X -H -d -F -b -c) and refuses every other. A cookie file is a line `name=value` a cookie.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { basename, join } from 'node:path'
import type { Page } from './markdown.ts'

interface Call {
  url: string
  method: string | undefined
  head: boolean
  readonly headers: Record<string, string>
  readonly data: string[]
  readonly form: FormData
  /** The file that the cookies of the answer are written to. */
  jar: string | undefined
}

/**
 * Runs every block of a page that begins with `$ curl`. In the expected output, `...` matches any text.
 * @param origins the server for each port of `http://localhost:PORT`
 * @param folder the folder of the files that the lines name
 */
export async function runCurlLines(
  page: Page,
  origins: Readonly<Record<string, string>>,
  folder: string,
): Promise<void> {
  let count = 0
  for (const { text } of page.blocks.filter((block) => block.text.startsWith('$ curl'))) {
    for (const part of text.split(/^\$ /m).slice(1)) {
      const end = part.indexOf('\n')
      const line = part.slice(0, end)
      const expected = part.slice(end + 1)
      const origin = origins[/localhost:(\d+)/.exec(line)?.[1] ?? '']
      assert.ok(origin, `${page.file}: no server for ${line}`)
      const printed = await curl(line, { origin, folder })
      const escaped = expected.trimEnd().replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
      const pattern = new RegExp(`^${escaped.replaceAll('\\.\\.\\.', '[^]*?')}$`)
      assert.match(printed.trimEnd(), pattern, `${page.file}: ${line}`)
      count += 1
    }
  }
  assert.ok(count > 0, `${page.file} has no curl line`)
}

/**
 * Runs one line and returns what curl would print.
 * @param line `curl ...`, with quotes as for a shell
 * @param place `origin`: replaces `http://localhost:PORT`; `folder`: the folder of `@files`
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
      response.on('end', () => {
        if (call.jar !== undefined) writeFileSync(call.jar, cookiesOf(response.headers['set-cookie'] ?? []))
        resolve(text)
      })
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

/** The cookies to keep, one per line. A cookie whose age is 0 is dropped. */
function cookiesOf(fields: readonly string[]): string {
  const kept = fields.filter((field) => !/; *max-age=0(?:;|$)/i.test(field))
  return kept.map((field) => `${field.split(';', 1)[0]}\n`).join('')
}

/** Takes a command line apart: blanks between words, '...' and "..." as they are. */
function words(line: string): string[] {
  const found = line.matchAll(/(?:[^\s'"]|'[^']*'|"[^"]*")+/g)
  return [...found].map(([word]) => word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'))
}

function parse([program, ...rest]: string[], folder: string): Call {
  if (program !== 'curl') throw new Error(`A tested line begins with curl: it is ${program}`)
  const form = new FormData()
  const call: Call = { url: '', method: undefined, head: false, headers: {}, data: [], form, jar: undefined }
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '-s' || word === '-i' || word === '-si') call.head ||= word.includes('i')
    else if (word === '-X') call.method = rest.shift()
    else if (word === '-H') addHeader(call, rest.shift() ?? '')
    else if (word === '-d') call.data.push(rest.shift() ?? '')
    else if (word === '-b') call.headers['cookie'] = readCookies(join(folder, rest.shift() ?? ''))
    else if (word === '-c') call.jar = join(folder, rest.shift() ?? '')
    else if (word === '-F') addPart(call, rest.shift() ?? '', folder)
    else if (/^http:\/\/localhost:\d+/.test(word) && call.url === '') call.url = word
    else throw new Error(`This curl does not know ${word}`)
  }
  return call
}

function readCookies(path: string): string {
  return readFileSync(path, 'utf8').trimEnd().split('\n').join('; ')
}

function addHeader(call: Call, field: string): void {
  const [name = '', value = ''] = field.split(/: *(.*)/s, 2)
  call.headers[name.toLowerCase()] = value
}

function addPart(call: Call, part: string, folder: string): void {
  const [name = '', value = ''] = part.split(/=(.*)/s, 2)
  if (!value.startsWith('@')) return call.form.append(name, value)
  const bytes = readFileSync(join(folder, value.slice(1)))
  call.form.append(name, new Blob([bytes], { type: 'application/octet-stream' }), basename(value))
}
