/**
 * The desired state in the shared engine: a hash that one script replaces.
 *
 * Access to the engine must not give administrator rights. So the state carries an HMAC over `shared.name` and all
 * its fields, with a key derived from `app_key`, and the admin's credentials in it are encrypted with AES-256-GCM under
 * a second derived key. The keys of `app_key_previous` verify and decrypt too.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, type KeyObject } from 'node:crypto'
import type { AdminCredentials } from '../access/credentials.ts'
import { areUsedCodes } from '../access/used-codes.ts'
import { isObject } from '../base/object.ts'
import { initialState, type DesiredState, type RouteEntry, type TraceEntry } from '../control/desired-state.ts'
import type { Redis, RedisScript } from '../redis/client.ts'
import { integerIn, listIn, textIn } from '../redis/reply.ts'
import { deriveKey, isEqual } from '../tokens/signature.ts'

/** The state in the engine was not written by a server with this `app_key` and `shared.name`. */
export class ForgedStateError extends Error {
  override readonly name = 'ForgedStateError'
  /** The stamp in the engine. */
  readonly stamp: string

  /** @param problem what is wrong with the state; by default, that its `app_key` or `shared.name` differs */
  constructor(key: string, stamp: string, problem = 'was not written by a server with this app_key and shared.name') {
    super(`${key} in the shared engine ${problem}: remove it with DEL ${key}`)
    this.stamp = stamp
  }
}

/**
 * The state in the engine is signed by a server with this `app_key` and `shared.name`, of another version. It must not
 * be replaced: nodes of that version may be running.
 */
export class OtherVersionError extends Error {
  override readonly name = 'OtherVersionError'

  constructor(key: string) {
    const advice = 'run one version on all nodes, or stop them all, remove it with'
    super(`${key} in the shared engine was written by another version of svc: ${advice} DEL ${key}, and start them`)
  }
}

interface RedisStateOptions {
  readonly redis: Redis
  /** The key of the hash. */
  readonly key: string
  /** `shared.name`. */
  readonly name: string
  /** The current `app_key`, then the previous ones. */
  readonly appKeys: readonly string[]
  /** Published with each new state. */
  readonly announcement: { readonly channel: string; readonly message: string }
}

/** The keys derived from one `app_key`. */
interface StateKeys {
  readonly mac: KeyObject
  readonly seal: KeyObject
}

/** A field that states had before they were signed. */
const unsignedField = 'seq'
/** The maximum number of such fields that an error lists, and the maximum length of each name. */
const mostNamed = 20
const mostNameLength = 60
/** The fields of the hash, in the order of the HMAC. */
const fields = ['version', 'stamp', 'ancestors', 'content'] as const

/**
 * KEYS: the state. ARGV: the expected stamp, the channel, the message, names and values of the fields. Returns 0 when
 * the state has another stamp.
 */
const writeScript = `
if (redis.call('HGET', KEYS[1], 'stamp') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1`

function isRouteEntry(value: unknown): value is RouteEntry {
  return isObject(value) && typeof value['name'] === 'string' && typeof value['at'] === 'number'
}

function isTraceEntry(value: unknown): value is TraceEntry {
  if (!isObject(value)) return false
  const { on, until = 0, back = true } = value
  return typeof on === 'boolean' && typeof until === 'number' && typeof back === 'boolean'
}

/** Reads and writes the state. Its functions reject as `Redis.command` does. */
export class RedisState {
  readonly #options: RedisStateOptions
  readonly #script: RedisScript
  readonly #keys: readonly StateKeys[]
  #isOld = false

  constructor(options: RedisStateOptions) {
    this.#options = options
    this.#script = options.redis.script(writeScript)
    this.#keys = options.appKeys.map((appKey) => {
      return { mac: deriveKey(appKey, 'nodes.state'), seal: deriveKey(appKey, 'nodes.credentials') }
    })
  }

  /** Whether a previous key verified the state that was read last. */
  get isOfPreviousKey(): boolean {
    return this.#isOld
  }

  /**
   * Reads the state; the initial one when there is none. Rejects with ForgedStateError when no key verifies it, and
   * with OtherVersionError when a key does but the content has the format of another version.
   */
  async read(): Promise<DesiredState> {
    const { redis, key } = this.#options
    const reply = listIn(await redis.command('HMGET', key, ...fields, 'mac', unsignedField))
    if (reply.every((value) => value === null)) return initialState
    const [version = '', stamp = '', ancestors = '', content = '', mac = '', unsigned = ''] = reply.map((value) =>
      value === null ? '' : textIn(value),
    )
    if (unsigned !== '' && mac === '') throw await this.#unsigned(stamp)
    const at = this.#keys.findIndex((each) => isEqual(this.#macOf([version, stamp, ancestors, content], each.mac), mac))
    const keys = this.#keys[at]
    this.#isOld = at > 0
    if (keys === undefined) throw new ForgedStateError(key, stamp)
    const parsed = this.#parse(content, keys.seal)
    if (parsed === undefined || !/^\d{1,15}$/.test(version)) throw new OtherVersionError(key)
    return { ...parsed, version: Number(version), stamp, ancestors: ancestors === '' ? [] : ancestors.split(' ') }
  }

  /**
   * Writes a state.
   * @param expected the stamp of the state to replace
   * @returns false when another process has already replaced it
   */
  async write({ version, stamp, ancestors, ...content }: DesiredState, expected: string): Promise<boolean> {
    const { key, announcement } = this.#options
    const [current] = this.#keys as readonly [StateKeys] // The current key always exists.
    const { credentials, ...open } = content
    const sealed = credentials && this.#seal(credentials, current.seal)
    const values = [String(version), stamp, ancestors.join(' '), JSON.stringify({ ...open, credentials: sealed })]
    const pairs = fields.flatMap((field, at) => [field, values[at] as string]) // One value for each field.
    const mac = this.#macOf(values, current.mac)
    const notice = [announcement.channel, announcement.message]
    return integerIn(await this.#script.run([key], expected, ...notice, ...pairs, 'mac', mac)) === 1
  }

  #macOf(values: readonly string[], key: KeyObject): string {
    return createHmac('sha256', key).update(JSON.stringify([this.#options.name, ...values])).digest('base64url')
  }

  #seal(credentials: AdminCredentials, key: KeyObject): string {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(this.#options.name))
    const sealed = Buffer.concat([cipher.update(JSON.stringify(credentials)), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  #open(text: string, key: KeyObject): AdminCredentials {
    const bytes = Buffer.from(text, 'base64url')
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: 16 })
    decipher.setAAD(Buffer.from(this.#options.name)).setAuthTag(bytes.subarray(12, 28))
    const opened = Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()])
    return JSON.parse(opened.toString()) as AdminCredentials // Encrypted by a server of this application.
  }

  /** Makes the error about a state without a signature. It lists the fields that are lost. */
  async #unsigned(stamp: string): Promise<ForgedStateError> {
    const { redis, key } = this.#options
    const names = listIn(await redis.command('HKEYS', key)).map(textIn)
    const held = names.filter((name) => name !== unsignedField && name !== 'stamp')
    const some = held.sort().slice(0, mostNamed).map((name) => name.slice(0, mostNameLength))
    const more = held.length > some.length ? ` and ${held.length - some.length} more` : ''
    const problem = 'was written by an older version of svc, which did not sign it, so it is not used'
    const loss = `stop all nodes; these fields are lost and must be set again (${some.join(', ')}${more})`
    return new ForgedStateError(key, stamp, `${problem}; ${loss}`)
  }

  /** Parses the content, which the HMAC has verified; undefined when a server of another version wrote it. */
  #parse(text: string, key: KeyObject): Omit<DesiredState, 'version' | 'stamp' | 'ancestors'> | undefined {
    try {
      const value: unknown = JSON.parse(text)
      if (!isObject(value) || !isObject(value['trace'])) return undefined
      const { reload, routes, trace, credentials, usedCodes } = value
      const isComplete = typeof reload === 'number' && Array.isArray(routes) && routes.every(isRouteEntry)
      if (!isComplete || !Object.values(trace).every(isTraceEntry)) return undefined
      return {
        reload,
        routes,
        trace: trace as Record<string, TraceEntry>, // Each has been checked.
        ...(typeof credentials === 'string' && { credentials: this.#open(credentials, key) }),
        ...(areUsedCodes(usedCodes) && { usedCodes }),
      }
    } catch {
      return undefined
    }
  }
}
