/**
 * The second factor of the sign-in: a code of an authenticator app, or a recovery code, after the password.
 *
 * Surprise: this process checks a code, but a change of the desired state marks it as used. Only the process that makes
 * the change gets `accepted`, so a code is good once over all processes and nodes. While a shared engine is away, there
 * is no sign-in with a code, since nobody knows which codes were used.
 */
import type { AccessPort } from './access-port.ts'
import type { SecondFactor } from './credentials.ts'
import { hashOfRecoveryCode } from './recovery-codes.ts'
import { stepOf } from './totp.ts'

/** The result of an attempt: the second factor that was right, for the records, or why it was not. */
export type CodeResult = { readonly by: string } | 'wrong' | 'used'

/**
 * Checks a code, and uses it if it is right.
 * @param typed six digits, or a recovery code, perhaps with spaces and dashes
 * @param nowMs milliseconds since 1970
 * @throws HttpError 503 while a shared engine is away
 */
export async function tryCode(
  { secret, recoveryCodes }: SecondFactor,
  { useCode }: Pick<AccessPort, 'useCode'>,
  typed: string,
  nowMs: number,
): Promise<CodeResult> {
  const code = typed.normalize('NFKC').replaceAll(/[\s-]/g, '')
  const step = stepOf(secret, code, nowMs)
  if (step !== undefined) {
    const { accepted } = await useCode({ step })
    return accepted ? { by: 'code' } : 'used'
  }
  const recoveryHash = hashOfRecoveryCode(code, recoveryCodes)
  if (recoveryHash === undefined) return 'wrong'
  const { accepted, left } = await useCode({ recoveryHash })
  return accepted ? { by: `recovery code, ${left} left` } : 'used'
}

/** Returns the text of the page after a wrong code. It says the time, since a wrong clock is the usual reason. */
export function messageOf(result: 'wrong' | 'used', nowMs: number): string {
  if (result === 'used') return 'This code has been used. Wait for the next one.'
  const time = new Date(nowMs).toISOString().slice(11, 19)
  return `Wrong code. If your app shows it now, check the clocks: the server's clock says ${time} UTC.`
}
