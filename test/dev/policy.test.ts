import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowScript } from '../../lib/dev/policy.ts'

const rows: readonly (readonly [policies: readonly string[], allowed: readonly string[], nonce: string | undefined])[] = [
  [[], [], undefined],
  [[''], [''], undefined],
  [["img-src 'self'"], ["img-src 'self'"], undefined],
  [
    ["default-src 'self'; base-uri 'none'"],
    ["default-src 'self'; base-uri 'none'; script-src 'self' 'nonce-new'; connect-src 'self'"],
    'new',
  ],
  [["default-src 'none'"], ["default-src 'none'; script-src 'nonce-new'; connect-src 'self'"], 'new'],
  [["script-src 'nonce-abc'; connect-src https:"], ["script-src 'nonce-abc'; connect-src https: 'self'"], 'abc'],
  [["Script-Src 'Nonce-aB+/=' 'strict-dynamic'"], ["script-src 'Nonce-aB+/=' 'strict-dynamic' 'nonce-aB+/='"], 'aB+/='],
  [["script-src 'strict-dynamic' 'sha256-x'"], ["script-src 'strict-dynamic' 'sha256-x' 'nonce-new'"], 'new'],
  [["script-src 'unsafe-inline'"], ["script-src 'unsafe-inline' 'self'"], undefined],
  [["script-src 'self' 'unsafe-inline'"], ["script-src 'self' 'unsafe-inline'"], undefined],
  [["script-src 'unsafe-inline' 'sha256-x'"], ["script-src 'unsafe-inline' 'sha256-x' 'nonce-new'"], 'new'],
  [
    ["default-src 'self' 'unsafe-inline'"],
    ["default-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'; connect-src 'self' 'unsafe-inline'"],
    undefined,
  ],
  [["script-src-elem 'none'; script-src 'self'"], ["script-src-elem 'nonce-new'; script-src 'self'"], 'new'],
  [["script-src 'none' ; script-src 'self';"], ["script-src 'nonce-new'; script-src 'self'"], 'new'],
  [["connect-src 'none'"], ["connect-src 'self'"], undefined],
  [["script-src 'nonce-a', script-src 'nonce-b'"], ["script-src 'nonce-a', script-src 'nonce-b' 'nonce-a'"], 'a'],
  [["script-src 'self'", "script-src 'nonce-b'"], ["script-src 'self' 'nonce-b'", "script-src 'nonce-b'"], 'b'],
  [["script-src 'nonce-\"><'"], ["script-src 'nonce-\"><' 'nonce-new'"], 'new'],
]

test('a policy allows the script and its stream, and is otherwise unchanged', () => {
  for (const [policies, allowed, nonce] of rows) {
    assert.deepEqual(allowScript(policies, () => 'new'), { fields: allowed, nonce }, policies.join('\n'))
  }
})
