/**
 * The admin credentials in memory and in `svc.json`. A change is written first and then applied: if the file cannot be
 * written, nothing changes.
 *
 * Surprise: a setup reads the file again. Credentials set with `svc passwd` while the server runs must not be replaced
 * by the first visitor: they are loaded, and the setup is refused.
 */
import { SerialQueue } from '../base/serial-queue.ts'
import {
  isSameAdmin,
  judge,
  makeCredentials,
  makeSecret,
  setupRequired,
  type AdminCredentials,
  type SecondFactor,
} from './credentials.ts'

/** The configuration keys of the credentials. */
interface CredentialSettings {
  readonly 'admin.user': string
  readonly 'admin.password': string
  readonly 'admin.secret': string
  readonly 'admin.totp': string
  readonly 'admin.recovery_codes': readonly string[]
  readonly app_key: string
}

/** Reads and writes `svc.json`; `config/credential-writer.ts` implements it. */
export interface CredentialWriter {
  /** Returns the current values in the file; undefined without a file. Throws Error if it cannot be read. */
  read(): CredentialSettings | undefined
  /** Writes values, and leaves the rest of the file unchanged. If it throws Error, nothing has changed. */
  write(changes: Partial<CredentialSettings>): void
}

/** The initial credentials, and where changes are written. */
interface CredentialStoreOptions {
  readonly config: CredentialSettings & { readonly 'app.env': string; readonly 'admin.hardened': boolean }
  /** Undefined: an embedded server without a file, whose credentials last as long as it runs. */
  readonly writer: CredentialWriter | undefined
  /** The `app_key` in use; setup writes it if the configuration has none. */
  readonly appKey: string
  /** Milliseconds since 1970. */
  readonly now?: () => number
}

/** Holds the credentials of one server. */
export class CredentialStore {
  readonly #options: CredentialStoreOptions
  readonly #now: () => number
  #current: AdminCredentials
  #own: AdminCredentials
  #keySaved: boolean
  readonly #inTurn = new SerialQueue()

  constructor(options: CredentialStoreOptions) {
    const { config } = options
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#own = credentialsOf(config)
    this.#current = this.#own
    this.#keySaved = config.app_key !== ''
  }

  /** The current credentials. */
  get current(): AdminCredentials {
    return this.#current
  }

  /** The credentials of this machine: configured, or made here. */
  get own(): AdminCredentials {
    return this.#own
  }

  /** Whether the key in use is also in the file, so that tokens outlive the process. */
  get keySaved(): boolean {
    return this.#keySaved
  }

  /**
   * Sets the first credentials. Of two concurrent calls one succeeds.
   * @param password in plain text
   * @returns false if there are credentials already
   * @throws Error if the file cannot be read or written
   */
  setUp(user: string, password: string): Promise<boolean> {
    return this.#inTurn.run(async () => {
      if (setupRequired(this.#current)) this.#takeFromFile()
      if (!setupRequired(this.#current)) return false
      const { config, appKey } = this.#options
      const { secondFactor } = this.#current
      const hardened = config['admin.hardened']
      const made = await makeCredentials({ user, password, hardened, secondFactor, nowMs: this.#now() })
      this.#options.writer?.write({
        'admin.user': made.user,
        'admin.password': made.password,
        'admin.secret': made.secret,
        ...(config.app_key === '' && config['app.env'] === 'prod' && { app_key: appKey }),
      })
      this.#own = made
      this.#current = made
      this.#keySaved = true
      return true
    })
  }

  /**
   * Makes a secret if there is none.
   * @returns the secret in use, and whether this call made it
   * @throws Error if the file cannot be written
   */
  ensureSecret(): Promise<{ readonly secret: string; readonly made: boolean }> {
    return this.#inTurn.run(async () => {
      if (this.#current.secret !== '') return { secret: this.#current.secret, made: false }
      const { user, password, secondFactor } = this.#current
      const hardened = this.#options.config['admin.hardened']
      const secret = makeSecret({ user, password, hardened, secondFactor, nowMs: this.#now() })
      this.#options.writer?.write({ 'admin.secret': secret })
      this.#current = { ...this.#current, secret }
      if (isSameAdmin(this.#own, this.#current)) this.#own = this.#current
      return { secret, made: true }
    })
  }

  /**
   * Applies the shared credentials, if they apply to this machine. Never fails: while the file cannot be read, the key
   * counts as not saved.
   */
  share(shared: AdminCredentials | undefined): void {
    if (shared === undefined || judge(this.#own, shared) !== 'take') return
    this.#current = shared
    this.#keySaved ||= this.#fileHasKey()
  }

  /**
   * Replaces the credentials made here by those that another process made at the same time.
   * @throws Error if the file cannot be written
   */
  adopt(credentials: AdminCredentials): void {
    const { user, password, secret, secondFactor } = credentials
    this.#options.writer?.write({
      'admin.user': user,
      'admin.password': password,
      'admin.secret': secret,
      ...((secondFactor ?? this.#own.secondFactor) && settingsOf(secondFactor)),
    })
    this.#own = credentials
    this.#current = credentials
  }

  /**
   * Removes used recovery codes from the file, and from here.
   * @param used the hashes of all that were used
   * @throws Error if the file cannot be written; they are removed from here nevertheless
   */
  forgetRecoveryCodes(used: readonly string[]): void {
    const isLeft = (hash: string): boolean => !used.includes(hash)
    const filtered = (credentials: AdminCredentials): AdminCredentials => {
      const { secondFactor: factor } = credentials
      if (factor === undefined) return credentials
      return { ...credentials, secondFactor: { ...factor, recoveryCodes: factor.recoveryCodes.filter(isLeft) } }
    }
    this.#own = filtered(this.#own)
    this.#current = filtered(this.#current)
    const { writer } = this.#options
    const saved = writer?.read()?.['admin.recovery_codes'] ?? []
    if (!saved.every(isLeft)) writer?.write({ 'admin.recovery_codes': saved.filter(isLeft) })
  }

  #fileHasKey(): boolean {
    const { writer, appKey } = this.#options
    try {
      return writer?.read()?.app_key === appKey
    } catch {
      return false
    }
  }

  #takeFromFile(): void {
    const saved = this.#options.writer?.read()
    const found = saved === undefined ? this.#current : credentialsOf(saved)
    if (setupRequired(found)) return
    this.#own = found
    this.#current = found
  }
}

/** Returns the credentials of a configuration. */
export function credentialsOf(config: Omit<CredentialSettings, 'app_key'>): AdminCredentials {
  const { 'admin.totp': totp, 'admin.recovery_codes': recoveryCodes } = config
  return {
    user: config['admin.user'],
    password: config['admin.password'],
    secret: config['admin.secret'],
    ...(totp !== '' && { secondFactor: { secret: totp, recoveryCodes } }),
  }
}

/** Returns the settings of a second factor; empty ones if there is none. */
export function settingsOf(
  factor: SecondFactor | undefined,
): Pick<CredentialSettings, 'admin.totp' | 'admin.recovery_codes'> {
  return { 'admin.totp': factor?.secret ?? '', 'admin.recovery_codes': factor?.recoveryCodes ?? [] }
}
