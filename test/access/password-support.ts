// What holds for every stored hash of a password, whatever its form and cost.
import assert from 'node:assert/strict'
import type { PasswordCheck } from '../../lib/access/password.ts'

/** Asserts that of several passwords `secret` alone is that of a stored hash. */
export async function takesSecretAlone(check: PasswordCheck, stored: string): Promise<void> {
  assert.equal(await check.matches('secret', stored), true)
  for (const wrong of ['', 'Secret', 'secret ', 'secre', stored]) {
    assert.equal(await check.matches(wrong, stored), false, wrong)
  }
}
