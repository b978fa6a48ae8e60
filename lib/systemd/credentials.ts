/**
 * The application secret from outside of the configuration file: a credential of the service manager
 * (`LoadCredential=app_key:...`, systemd.exec(5)), or the environment variable `SVC_APP_KEY`. The credential stands above
 * the variable, and both stand above `app_key` of the file, which the first setup then leaves as it is.
 *
 * Surprise: a key that is named but empty or cannot be read is an error. Who meant to give a key must not get a random
 * one without noticing. The variable is taken out of the environment, so that no child of an application gets the key.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../config/load.ts'

/** A key, and the words for where it comes from. */
export interface GivenAppKey {
  readonly key: string
  readonly from: string
}

/**
 * Reads the key and takes `SVC_APP_KEY` away. One line end at the end of the credential is not part of it.
 * @returns undefined when neither is there
 * @throws ConfigError when it is empty or cannot be read
 */
export function takeAppKey(env: NodeJS.ProcessEnv): GivenAppKey | undefined {
  const { CREDENTIALS_DIRECTORY: folder = '', SVC_APP_KEY: variable } = env
  delete env['SVC_APP_KEY']
  const file = folder === '' ? undefined : join(folder, 'app_key')
  const credential = file === undefined ? undefined : readCredential(file)
  if (credential !== undefined) return checked(credential.replace(/\r?\n$/, ''), `the credential ${file}`)
  return variable === undefined ? undefined : checked(variable, 'the environment variable SVC_APP_KEY')
}

function checked(key: string, from: string): GivenAppKey {
  if (key === '') throw new ConfigError('app_key', [`${from} is empty`])
  return { key, from }
}

/** Undefined: there is no such credential, though there may be others. */
function readCredential(file: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException // What node:fs and the decoder throw.
    if (code === 'ENOENT') return undefined
    throw new ConfigError('app_key', [`the credential ${file} cannot be read: ${message}`], { cause: error })
  }
}
