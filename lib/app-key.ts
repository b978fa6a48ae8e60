/**
 * The application secret, `app_key`: which one signs, and what the operator should hear about it.
 */
import { randomBytes } from 'node:crypto'
import type { Config } from './config/table.ts'

/** The built-in key of `dev`. It is published with the source: whoever knows it can sign any token. */
export const publishedInsecureAppKey = 'svc-published-insecure-development-key'

/** The key in use, and a warning when it does not do what production needs. */
export interface AppKey {
  readonly key: string
  readonly warning: string | undefined
}

/** Chooses the key. In `prod` an empty one is replaced by a random key that lives as long as the process. */
export function chooseAppKey(config: Config): AppKey {
  const { app_key: key } = config
  const production = config['app.env'] === 'prod'
  if (key === '' && !production) return { key: publishedInsecureAppKey, warning: undefined }
  if (key === '') {
    return {
      key: randomBytes(32).toString('base64url'),
      warning: 'app_key is empty: a random one is used, so signed tokens end with this process; set app_key in svc.json',
    }
  }
  if (key === publishedInsecureAppKey && production) {
    return { key, warning: 'app_key is the published default: anyone can sign tokens; set a secret one in svc.json' }
  }
  return { key, warning: undefined }
}
