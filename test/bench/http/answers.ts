/**
 * Nothing is timed that does not answer rightly: each server is asked once before, and its answer held against the
 * workload's. The request that is asked is the one that is sent again and again.
 *
 * Surprise: svc and bare must send the same header fields; of others the difference is told.
 */
import { Agent, request as sendRequest, type IncomingMessage } from 'node:http'
import { Agent as SecureAgent, request as sendSecureRequest } from 'node:https'
import * as zlib from 'node:zlib'
import type { ServerProcess } from './server-process.ts'
import type { Workload } from './workloads.ts'
import type { LoadRequest } from './wrk.ts'

const { zstdDecompressSync } = zlib as { readonly zstdDecompressSync?: (bytes: Buffer) => Buffer } // Node 20 lacks it.

/** Whether this Node reads zstd. */
export const readsZstd = zstdDecompressSync !== undefined

/** What belongs to a request beside what the workload says. */
export interface Credentials {
  /** Cookies as they are sent; '' for none. */
  readonly cookie: string
  /** The form's token; '' for none. */
  readonly token: string
}

interface Answer {
  readonly status: number
  /** By lower-case name. */
  readonly fields: ReadonlyMap<string, string>
  readonly body: Buffer
  readonly cookies: readonly string[]
}

/** Fields whose value is the server's own affair. */
const anyValue: readonly string[] = ['date', 'etag']
const everywhere = { Date: '', Connection: 'keep-alive', 'Keep-Alive': 'timeout=65' }
const closing = { Date: '', Connection: 'close' }
const none: Credentials = { cookie: '', token: '' }

/** Begins on a server: fetches what the request of the workload needs. */
export async function begin(server: ServerProcess, workload: Workload): Promise<Credentials> {
  if (!workload.begins) return none
  const url = `${server.origin}/begin`
  const { cookies, body } = await ask({ url, method: 'GET', headers: {}, body: '', status: 200 })
  const cookie = cookies.map((text) => text.split(';', 1)[0]).join('; ')
  const token = /value="([^"]+)"/.exec(body.toString())?.[1] ?? ''
  if (cookie + token === '') throw new Error(`Cannot measure ${server.name}: ${url} gave neither a cookie nor a token`)
  return { cookie, token }
}

/** The request to a server. */
export function requestTo({ origin }: ServerProcess, workload: Workload, { cookie, token }: Credentials): LoadRequest {
  const { method, path, status, form } = workload
  const headers = { ...workload.headers, ...(cookie === '' ? {} : { Cookie: cookie }) }
  const body = token === '' ? form : `${form}&_csrf=${encodeURIComponent(token)}`
  return { url: origin + path, method, headers, body, status }
}

/**
 * Asks once.
 * @returns how its header fields differ from bare's; '' when they do not
 * @throws Error when status or body are not the workload's, or header fields of bare and svc are not
 */
export async function checkAnswer(name: string, request: LoadRequest, workload: Workload): Promise<string> {
  const { status, fields, body } = await ask(request)
  const right = status === workload.status && decoded(body, workload.coding).equals(Buffer.from(workload.body))
  if (!right) throw new Error(`Cannot measure ${name}: ${request.url} is answered ${status} ${body.subarray(0, 500)}`)
  const difference = differenceOf(fields, expectedFields(workload, body.length))
  if (difference !== '' && (name === 'bare' || name === 'svc')) {
    throw new Error(`Cannot measure ${name}: ${workload.name} has other header fields than bare: ${difference}`)
  }
  return difference
}

/** The answer's own length counts where it is compressed: each compressor has another one. */
function expectedFields({ fields, headers, body, coding }: Workload, sentBytes: number): Map<string, string> {
  const length = String(coding === '' ? Buffer.byteLength(body) : sentBytes)
  const always = headers['Connection'] === 'close' ? closing : everywhere
  const all = { ...always, ...fields, 'Content-Length': length }
  return new Map(Object.entries(all).map(([name, value]) => [name.toLowerCase(), value]))
}

function differenceOf(fields: ReadonlyMap<string, string>, expected: ReadonlyMap<string, string>): string {
  const parts: string[] = []
  for (const [name, value] of expected) {
    const found = fields.get(name)
    if (found === undefined) parts.push(`no \`${name}\``)
    else if (found !== value && !anyValue.includes(name)) parts.push(`\`${name}: ${found}\``)
  }
  for (const [name, value] of fields) if (!expected.has(name)) parts.push(`\`${name}: ${value}\` more`)
  return parts.join(', ')
}

function decoded(body: Buffer, coding: Workload['coding']): Buffer {
  if (coding !== 'zstd') return coding === '' ? body : zlib.gunzipSync(body)
  if (zstdDecompressSync === undefined) throw new Error('This Node cannot read zstd')
  return zstdDecompressSync(body)
}

/** Asks with keep-alive, as the load does. */
async function ask({ url, method, headers, body }: LoadRequest): Promise<Answer> {
  const isSecure = url.startsWith('https:')
  const agent = isSecure ? new SecureAgent({ keepAlive: true, rejectUnauthorized: false }) : new Agent({ keepAlive: true })
  const send = isSecure ? sendSecureRequest : sendRequest
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      send(url, { method, headers, agent }, resolve).on('error', reject).end(body)
    })
    const chunks: Buffer[] = []
    for await (const chunk of answer) chunks.push(chunk as Buffer) // No encoding is set.
    const fields = new Map<string, string>()
    const { rawHeaders } = answer
    for (let at = 0; at < rawHeaders.length; at += 2) {
      fields.set((rawHeaders[at] as string).toLowerCase(), rawHeaders[at + 1] as string) // They come in pairs.
    }
    const cookies = answer.headers['set-cookie'] ?? []
    return { status: answer.statusCode ?? 0, fields, body: Buffer.concat(chunks), cookies }
  } finally {
    agent.destroy()
  }
}
