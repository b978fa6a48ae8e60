/**
 * Conversations for the server: what one connection sends. A list of texts, of which the first character says what it is:
 *
 * - `s`, sound: one request, framed as it should be, with anything in its path, fields and body. It gets one answer.
 * - `b`, broken: a request with changed bytes, framing too. What is behind it may be swallowed or refused.
 * - `h`, held: a long poll, a stream or a WebSocket, the last of its connection.
 */
import { clientFrame } from '../websocket/frames.ts'
import { handshakeText } from '../support/websocket.ts'
import type { Seeded } from '../support/seeded.ts'
import { changed, odd, pieces } from './mutate.ts'
import type { Input } from './target.ts'

/** A cookie that signs its bearer in; `wire-server.ts` sets the secret that it is signed with. */
export interface WireSecrets {
  readonly adminCookie: string
  readonly sessionCookie: string
  readonly csrfToken: string
  readonly jwt: string
}

/** Paths of the administration that nobody may reach without its cookie. */
export const guardedPaths: readonly string[] = [
  '/svc-status', '/svc-metrics', '/svc-monitor', '/svc-index', '/svc-trace', '/svc-cache-clear', '/svc-routes/list', '/svc-routes/listall',
  '/svc-routes/add', '/svc-routes/delete', '/svc-routes/match',
]

/** The most requests of a connection before the one that ends it. */
const mostRequests = 8
const openPaths = [
  '/ok', '/read', '/json', '/form', '/echo/a/b/c', '/echo/%C3%A9/', '/cookie?v=x', '/session?k=a', '/csrf', '/jwt', '/view?a=x', '/small.txt', '/large.txt',
  '/none', '/poll?since=x', '/svc-ping', '/svc-ready', '/svc-login', '/svc-setup', '/', '/.well-known/x', '/folder',
]
const printable = odd.filter((text) => /^[\x21\x22\x24-\x7e]*$/.test(text))
const inField = [...odd.filter((text) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text)), 'a', ',', ';q=0.5', '=']
const jsonBodies = ['{"a":[1,{"b":null}]}', '{"__proto__":{"x":1}}', '{"name":"f1","url":"/added/f1","action":"actions.mjs@ok"}', '{"name":"f1"}', '{"module":"app","enabled":true}']
const formBodies = ['a=1&b=%C3%A9&_csrf=x', 'user=root&password=wrong1&next=/svc-status', 'user=&password=secret&password2=secret']
const multipartBodies = [
  '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--B\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\nfile\r\n--B--\r\n',
  `--B\r\nContent-Disposition: form-data; name="f"; filename="../x"\r\nContent-Type: text/plain\r\n\r\n${'y'.repeat(70_000)}\r\n--B--`,
]
const bodies: readonly (readonly [type: string, bodies: readonly string[]])[] = [
  ['application/json', jsonBodies],
  ['application/x-www-form-urlencoded', formBodies],
  ['multipart/form-data; boundary=B', multipartBodies],
  ['text/plain; charset=utf-8', ['text', '\xff\xfe', '']],
]

/** What a connection sends. */
export function makeConversation(seeded: Seeded, secrets: WireSecrets): Input {
  const list = Array.from({ length: seeded.integer(mostRequests) }, () => `s${soundRequest(seeded, secrets)}`)
  const last = seeded.integer(10)
  if (last < 4) list.push(`b${changed(seeded, soundRequest(seeded, secrets).replace(/^HEAD/, 'GET'), 1 + seeded.integer(4))}`)
  else if (last === 4) list.push(`h${heldRequest(seeded)}`)
  return list.length > 0 ? list : [`s${soundRequest(seeded, secrets)}`]
}

/** The request that ends a connection, and is the last to be answered. */
export const lastRequest = 'GET /ok HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'

function soundRequest(seeded: Seeded, secrets: WireSecrets): string {
  const method = seeded.pick(['GET', 'GET', 'HEAD', 'POST', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'PROPFIND'])
  const isAdmin = seeded.integer(6) === 0
  const path = isAdmin ? seeded.pick(guardedPaths) : seeded.pick(openPaths)
  const target = seeded.integer(3) === 0 ? somewhereElse(seeded, path) : path
  const fields = [`Host: ${seeded.integer(12) === 0 ? pieces(seeded, ['h', '.', ':', '1', '[', '::1', ']', '@', ...inField], 4) : 'h'}`]
  for (let left = seeded.integer(5); left > 0; left -= 1) fields.push(someField(seeded, secrets))
  if (isAdmin && seeded.integer(2) === 0) fields.push(`Cookie: ${secrets.adminCookie}`)
  return withBody(seeded, `${method} ${method === 'OPTIONS' && seeded.integer(8) === 0 ? '*' : target} HTTP/1.1`, method, fields)
}

function somewhereElse(seeded: Seeded, path: string): string {
  if (seeded.integer(8) === 0) return `http://${seeded.pick(['h', 'other:80', '[::1]', 'a@b', ''])}${path}`
  return `/${pieces(seeded, [path.slice(1), path, ...printable, '..%2f', '%5c', '%c0%ae', '?', '&a=b', 'é'.normalize()].filter((text) => /^[\x21-\x7e]*$/.test(text)), 4)}`
}

function someField(seeded: Seeded, secrets: WireSecrets): string {
  const [name, values] = seeded.pick<readonly [string, readonly string[]]>([
    ['Cookie', [`SVCSID=${secrets.sessionCookie}`, 'a=b; c="d"; __proto__=e', '=; ;', 'svc_admin=1700000000:00', secrets.adminCookie]],
    ['Accept', ['application/json', 'text/html, */*;q=0.1']],
    ['Accept-Encoding', ['gzip', 'br, gzip;q=0', '*']],
    ['X-Request-Id', ['abcdefgh', 'a'.repeat(128), 'x\ty']],
    ['X-Forwarded-For', ['1.2.3.4', '::1, 10.0.0.1', 'unknown']],
    ['Range', ['bytes=0-1', 'bytes=-5', 'bytes=9-1', 'bytes=0-0,2-3']],
    ['If-None-Match', ['"a"', '*', 'W/"b", "c']],
    ['If-Modified-Since', ['Sun, 06 Nov 1994 08:49:37 GMT', 'never']],
    ['Origin', ['http://h', 'null', 'https://evil.example']],
    ['Referer', ['http://h/ok', 'http://evil.example/x']],
    ['Sec-Fetch-Site', ['same-origin', 'cross-site', 'none']],
    ['Authorization', [`Bearer ${secrets.jwt}`, 'Bearer', 'Basic eDp5']],
    ['X-Csrf-Token', [secrets.csrfToken, 'x']],
    ['Last-Event-ID', ['7', '-1', 'x']],
    ['X-Requested-With', ['XMLHttpRequest']],
    ['User-Agent', ['"quoted" \\x', '']],
    ['Sec-Purpose', ['prefetch']],
    ['X-Any', ['x'.repeat(3000)]],
  ])
  const value = seeded.pick(values)
  return `${name}: ${seeded.integer(3) === 0 ? value + pieces(seeded, inField, 3) : value}`
}

function withBody(seeded: Seeded, line: string, method: string, fields: string[]): string {
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || seeded.integer(6) === 0) return [line, ...fields, '', ''].join('\r\n')
  const [type, texts] = seeded.pick(bodies)
  const text = seeded.pick(texts)
  const body = seeded.integer(2) === 0 ? text : changed(seeded, text, 1 + seeded.integer(3))
  fields.push(`Content-Type: ${type}`)
  if (seeded.integer(20) === 0) fields.push(`Expect: ${seeded.pick(['100-continue', '100-Continue', 'x'])}`)
  if (seeded.integer(3) > 0) return [line, ...fields, `Content-Length: ${body.length}`, '', body].join('\r\n')
  const middle = seeded.integer(body.length + 1)
  const chunks = [body.slice(0, middle), body.slice(middle), ''].filter((chunk, at) => chunk !== '' || at === 2)
  const framed = chunks.map((chunk) => `${chunk.length.toString(16)}${seeded.pick(['', ';x', ';x="y"'])}\r\n${chunk}\r\n`).join('')
  return [line, ...fields, 'Transfer-Encoding: chunked', '', framed].join('\r\n')
}

function heldRequest(seeded: Seeded): string {
  const kind = seeded.integer(3)
  if (kind < 2) {
    const target = seeded.pick(['/poll', '/poll?since=0', '/sse', '/sse?since=7'])
    const fields = [`Last-Event-ID: ${pieces(seeded, ['0', '9', '-', ...inField], 2)}`].slice(seeded.integer(2))
    return [`GET ${target} HTTP/1.1`, 'Host: h', ...fields, '', ''].join('\r\n')
  }
  let frames = ''
  for (let left = seeded.integer(6); left > 0; left -= 1) {
    const opcode = seeded.pick([0, 1, 2, 8, 9, 10, 3])
    const frame = clientFrame({ opcode, final: seeded.integer(4) > 0, payload: seeded.bytes(seeded.pick([0, 2, 125, 126, 900])), mask: [...seeded.bytes(4)] })
    frames += seeded.integer(3) === 0 ? changed(seeded, frame.toString('latin1'), 1) : frame.toString('latin1')
  }
  return handshakeText('/ws', ['Origin: http://h'].slice(seeded.integer(2))) + frames
}
