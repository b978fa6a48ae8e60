/** The application secret, `app_key`: which key signs, and warnings about it. */
import { randomBytes } from 'node:crypto'
import type { Config } from './table.ts'

/** The built-in key of `dev`. It is published with the source, so anyone can sign any token with it. */
export const publishedInsecureAppKey = 'svc-published-insecure-development-key'

const empty = 'app_key is empty: a random one is used, so signed tokens end with this process; set app_key in svc.json'
const published = 'app_key is the published default: anyone can sign tokens; set a secret one in svc.json'
const publishedBefore = 'app_key_previous holds the published default: anyone can sign tokens; remove it from svc.json'

const shortestKey = 32
const short = `app_key has fewer than ${shortestKey} characters: anyone with a token can guess it; `
  + 'set a longer one in svc.json'

/** The key in use, and warnings about keys that are not fit for production. */
export interface AppKey {
  readonly key: string
  /** Whether it outlives this process: it is configured, or the published one of `dev`. */
  readonly isLasting: boolean
  readonly warnings: readonly string[]
}

/** The keys of the audit log. */
export interface AuditKeys {
  /** `app_key`, which signs, then `app_key_previous`, which only verify. */
  readonly keys: readonly string[]
  /** Whether the first outlives the process. If not, each start begins a new chain. */
  readonly isLasting: boolean
}

/** Returns the keys of the audit log. @param chosen the key in use */
export function auditKeysOf(config: Config, chosen: AppKey): AuditKeys {
  return { keys: [chosen.key, ...config.app_key_previous], isLasting: chosen.isLasting }
}

/** Chooses the key. In `prod`, an empty one is replaced by a random key for the lifetime of the process. */
export function chooseAppKey(config: Config): AppKey {
  const { app_key: key } = config
  if (config['app.env'] !== 'prod') return { key: key || publishedInsecureAppKey, isLasting: true, warnings: [] }
  const warnings: string[] = []
  if (key === '') warnings.push(empty)
  if (key === publishedInsecureAppKey) warnings.push(published)
  if (key !== '' && key.length < shortestKey) warnings.push(short)
  if (config.app_key_previous.includes(publishedInsecureAppKey)) warnings.push(publishedBefore)
  return { key: key || randomBytes(32).toString('base64url'), isLasting: key !== '', warnings }
}
