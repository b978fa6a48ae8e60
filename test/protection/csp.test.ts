import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { withNonce, withSource } from '../../lib/protection/csp.ts'

const rows: readonly (readonly [what: string, policy: string, changed: string])[] = [
  ['begins with default-src where a directive is absent', "default-src 'self'", "default-src 'self'; script-src 'self' 'nonce-n'; style-src 'self' 'nonce-n'"],
  ['replaces none', "default-src 'none'", "default-src 'none'; script-src 'nonce-n'; style-src 'nonce-n'"],
  ['joins what is there', "script-src 'self' a.example; style-src 'NONE'", "script-src 'self' a.example 'nonce-n'; style-src 'nonce-n'"],
  ['leaves a policy without default-src as open as it is', "frame-ancestors 'none'", "frame-ancestors 'none'"],
  ['joins what is there, and nothing else, without default-src', 'img-src x; style-src y', "img-src x; style-src y 'nonce-n'"],
  ['goes beside another nonce', "script-src 'nonce-old'; style-src z", "script-src 'nonce-old' 'nonce-n'; style-src z 'nonce-n'"],
  ['reads names in any case, and odd spaces', ' Default-Src  x ;; SCRIPT-SRC', "Default-Src  x; script-src 'nonce-n'; style-src x 'nonce-n'"],
  ['joins the directives of elements where there are some', "default-src a; script-src-elem b", "default-src a; script-src-elem b 'nonce-n'; script-src a 'nonce-n'; style-src a 'nonce-n'"],
  ['changes the first of two of a name, which counts', 'default-src a; default-src b', "default-src a; default-src b; script-src a 'nonce-n'; style-src a 'nonce-n'"],
  ['leaves an empty policy', '', ''],
]

describe('a nonce', () => {
  for (const [what, policy, changed] of rows) it(what, () => assert.equal(withNonce(policy, 'n'), changed))
})

describe('a source', () => {
  it('is added to one directive', () => {
    assert.equal(withSource("default-src 'none'", 'connect-src', "'self'"), "default-src 'none'; connect-src 'self'")
  })
})
