/**
 * Secrets from outside of the configuration file: a credential of the service manager (`LoadCredential=app_key:...`,
 * systemd.exec(5)), or an environment variable such as `SVC_APP_KEY`. The variable stands above the credential, and
 * both stand above the file. The first setup leaves an `app_key` of the file then as it is.
 *
 * Surprise: a secret that is named but empty or cannot be read is an error. Who meant to give a key must not get a
 * random one without noticing. The variable is taken out of the environment, so that no child of an application gets
 * it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../config/load.ts'

/** A secret, and the words for where it comes from. */
export interface GivenSecret {
  readonly secret: string
  readonly from: string
}

/** The names of the credentials, and the variable that stands for each. */
const variables = { app_key: 'SVC_APP_KEY', shared_password: 'SVC_SHARED_PASSWORD' } as const

/**
 * Reads a secret and takes its variable away. One line end at the end of the credential is not part of it.
 * @param name `app_key`: what signs; `shared_password`: the password of the shared engine
 * @returns undefined when neither is there
 * @throws ConfigError when it is empty or cannot be read
 */
export function takeSecret(env: NodeJS.ProcessEnv, name: keyof typeof variables): GivenSecret | undefined {
  const { CREDENTIALS_DIRECTORY: folder = '', [variables[name]]: variable } = env
  delete env[variables[name]]
  if (variable !== undefined) return checked(name, variable, `the environment variable ${variables[name]}`)
  const file = folder === '' ? undefined : join(folder, name)
  const credential = file === undefined ? undefined : readCredential(name, file)
  return credential === undefined
    ? undefined
    : checked(name, credential.replace(/\r?\n$/, ''), `the credential ${file}`)
}

function checked(name: string, secret: string, from: string): GivenSecret {
  if (secret === '') throw new ConfigError(name, [`${from} is empty`])
  return { secret, from }
}

/** Undefined: there is no such credential, though there may be others. */
function readCredential(name: string, file: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException // What node:fs and the decoder throw.
    if (code === 'ENOENT') return undefined
    throw new ConfigError(name, [`the credential ${file} cannot be read: ${message}`], { cause: error })
  }
}
