/**
 * The codes of the second factor that were used, so that none is good twice. The desired state has them, for all
 * processes and nodes; a file keeps them over a restart (`control/used-codes-file.ts`).
 *
 * They are kept for each secret by its fingerprint: a new secret begins anew, even after a clock was ahead. A code is
 * used once a later one is, so the time step of the last one is enough.
 */
import { createHash } from 'node:crypto'
import { isObject } from '../base/object.ts'

/** The used codes of one secret. */
interface Used {
  /** The time step of the last code; -1 before the first. */
  readonly step: number
  /** The hashes of the recovery codes. */
  readonly recovery: readonly string[]
}

/** The used codes, by the fingerprint of their secret. */
export type UsedCodes = Readonly<Record<string, Used>>

/** A code to use: the time step of a code, or the hash of a recovery code. */
export type CodeToUse = { readonly step: number } | { readonly recoveryHash: string }

/** Codes of older secrets are forgotten. */
const maxSecrets = 8
const nothing: Used = { step: -1, recovery: [] }

/** Returns the fingerprint of a secret, which does not reveal it. */
export function fingerprintOf(secret: string): string {
  return createHash('sha256').update(`svc second factor ${secret}`).digest('base64url').slice(0, 16)
}

/**
 * Returns the used codes with one more.
 * @returns undefined if it, or a later one, was used before
 */
export function withUsed(codes: UsedCodes, secret: string, code: CodeToUse): UsedCodes | undefined {
  const key = fingerprintOf(secret)
  const { step, recovery } = codes[key] ?? nothing
  if ('step' in code ? code.step <= step : recovery.includes(code.recoveryHash)) return undefined
  const others = Object.entries(codes).filter(([other]) => other !== key).slice(1 - maxSecrets)
  const used = 'step' in code ? { step: code.step, recovery } : { step, recovery: [...recovery, code.recoveryHash] }
  return { ...Object.fromEntries(others), [key]: used }
}

/** Returns the hashes of the recovery codes of a secret that were used. */
export function usedRecoveryCodes(codes: UsedCodes, secret: string): readonly string[] {
  return (codes[fingerprintOf(secret)] ?? nothing).recovery
}

/** Returns the used codes of both. */
export function mergedCodes(some: UsedCodes, others: UsedCodes): UsedCodes {
  const merged = { ...some }
  for (const [key, { step, recovery }] of Object.entries(others)) {
    const known = merged[key] ?? nothing
    merged[key] = { step: Math.max(step, known.step), recovery: [...new Set([...known.recovery, ...recovery])] }
  }
  return merged
}

/** Whether a value, from a file or the shared engine, has used codes. */
export function areUsedCodes(value: unknown): value is UsedCodes {
  return isObject(value) && Object.values(value).every((used) => {
    return isObject(used) && Number.isSafeInteger(used['step']) && areTexts(used['recovery'])
  })
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((text) => typeof text === 'string')
}
