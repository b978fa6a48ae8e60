/**
 * `GET /svc-live.js`: the browser module of live pages, one file without imports. It is a system route without the
 * panel's guard: every page may load it, and it exists even when `admin.enabled` is false.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { Chain } from '../chain/compose.ts'
import { codingFor } from '../http/compress.ts'
import { BodyReply } from '../http/reply.ts'
import { parsePattern } from '../routing/pattern.ts'
import type { Route } from '../routing/route.ts'
import { evaluatePreconditions } from '../static/conditional.ts'

const type = 'text/javascript; charset=utf-8'
const url = '/svc-live.js'

/** Makes the route. Reads and compresses the file once. */
export function liveScriptRoute(): Route<Chain> {
  const plain = formOf(readFileSync(new URL('svc-live.js', import.meta.url)))
  const packed = formOf(gzipSync(plain.bytes, { level: 9 }))
  return {
    record: { name: 'svc.live', url, method: 'GET', action: '', middleware: '', scope: '' },
    pattern: parsePattern(url),
    system: true,
    target: (ctx) => {
      const isPacked = codingFor(ctx.header('accept-encoding'), ['gzip']) !== undefined
      const { bytes, etag } = isPacked ? packed : plain
      ctx.neverCompressed = true // The server's compression would make the ETag a weak one.
      ctx.setHeader('Cache-Control', 'no-cache')
      ctx.setHeader('X-Content-Type-Options', 'nosniff')
      ctx.setHeader('Vary', 'Accept-Encoding')
      ctx.setHeader('ETag', etag)
      const status = evaluatePreconditions(ctx, { etag, modifiedMs: undefined })
      if (status !== 200) return ctx.empty(status)
      if (isPacked) ctx.setHeader('Content-Encoding', 'gzip')
      return new BodyReply(type, bytes)
    },
  }
}

function formOf(bytes: Buffer): { readonly bytes: Buffer; readonly etag: string } {
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` }
}
