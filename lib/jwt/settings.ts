/**
 * The settings `setup.jwt`, and the type of the function made from them, which verifies tokens.
 */
import { settingsTable, type SettingsOf } from '../chain/settings.ts'
import type { ModuleLogger } from '../log/logger.ts'

/** The signature algorithms (RFC 7518, section 3.1; RFC 8037). */
export const algorithmNames = ['HS256', 'HS384', 'HS512', 'RS256', 'ES256', 'EdDSA'] as const

/** One of them. */
export type Algorithm = (typeof algorithmNames)[number]

/** The options of the group. */
export interface JwtGroupOptions {
  /** The base of a relative `key_file`, absolute. */
  readonly folder: string
  /** `paths.public`, absolute; undefined when there is none. */
  readonly publicFolder?: string | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly log: (module: string) => ModuleLogger
}

/** The keys of `setup.jwt`. */
export const table = settingsTable({
  algorithms: {
    kind: 'list', default: ['HS256'], check: checkAlgorithm,
    meaning: `Accepted signature algorithms, out of ${algorithmNames.join(', ')}; all for one kind of key.`,
  },
  key: {
    kind: 'string', default: '', secret: true,
    meaning: 'The key: a PEM, a JWK, or the plain secret of an HMAC.',
  },
  key_file: {
    kind: 'string', default: '', check: checkFile,
    meaning: 'Instead of `key`, a file that holds it, relative to the folder of `svc.json`. '
      + 'One line break at its end is not part of the key.',
  },
  issuer: {
    kind: 'string', default: '',
    meaning: 'The required claim `iss`. Empty: any.',
  },
  audience: {
    kind: 'string', default: '',
    meaning: 'The value that the claim `aud` must equal or contain. Empty: any.',
  },
  leeway_s: {
    kind: 'integer', min: 0, max: 3600, default: 0,
    meaning: 'Seconds by which the issuer\'s clock may differ from that of this server.',
  },
})

/** The values of the group. */
export type JwtSettings = SettingsOf<typeof table>

/** Reads a token: its claims, or why it is refused, in ASCII without quotes. Never throws. */
export type JwtVerifier = (
  token: string,
) => { readonly claims: Readonly<Record<string, unknown>> } | { readonly problem: string }

/** Whether a text names an algorithm. */
export function isAlgorithm(text: string): text is Algorithm {
  return (algorithmNames as readonly string[]).includes(text)
}

function checkAlgorithm(text: string): string | undefined {
  return isAlgorithm(text) ? undefined : `must be one of ${algorithmNames.join(', ')}`
}

function checkFile(text: string): string | undefined {
  return /[\u0000-\u001f\u007f]/.test(text) ? 'must be a path without control characters' : undefined
}
