// Checks for every stored password hash, whatever its form and cost.
import assert from 'node:assert/strict'
import type { PasswordCheck } from '../../lib/access/password.ts'

/** Asserts that of several passwords only `secret` matches a stored hash. */
export async function acceptsOnlySecret(check: PasswordCheck, stored: string): Promise<void> {
  assert.equal(await check.matches('secret', stored), true)
  for (const wrong of ['', 'Secret', 'secret ', 'secre', stored]) {
    assert.equal(await check.matches(wrong, stored), false, wrong)
  }
}
