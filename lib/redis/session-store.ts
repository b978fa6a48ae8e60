/**
 * Sessions in Redis or Valkey, for processes on one machine or on many. A session is a hash; reading it is one command,
 * changing it is another, and Redis deletes it when it expires. The hash has the session's fields, each prefixed with a
 * colon, and `v`, the version of this format.
 *
 * A key contains the SHA-256 of the session id, so a list of keys or a dump is not enough to sign in.
 *
 * Redis does not report keys evicted at `maxmemory`, so no session counts as evicted.
 */
import { createHash } from 'node:crypto'
import type { FieldChanges, Fields, SessionStore, StoreCounts, StoredSession } from '../session/store.ts'
import type { Redis, RedisScript } from './client.ts'
import { answered } from './errors.ts'
import { decoded, encoded, integerIn, listIn, textIn, type Argument, type Reply } from './reply.ts'

interface RedisSessionStoreOptions {
  /** Stays open when the store is closed. */
  readonly redis: Redis
  /** The prefix of every key, such as `svc:`. */
  readonly prefix: string
  /**
   * Checks the fields of a session. Returns what is wrong with them, in which case the session counts as damaged.
   */
  readonly problemOf: (fields: Fields) => string | undefined
  /**
   * Called for each damaged session, and each time a connected server refuses a command, for example for lack of
   * memory.
   */
  readonly onProblem: (message: string) => void
}

const version = '1'
const noChanges: FieldChanges = { set: new Map(), removed: new Set() }

/** KEYS: the session. Returns its remaining milliseconds and its fields in pairs; null when there is no session. */
const readScript = `
local fields = redis.call('HGETALL', KEYS[1])
if #fields == 0 then return false end
return {redis.call('PTTL', KEYS[1]), fields}`

/**
 * ARGV: milliseconds to live, or '' to keep the expiry; the number of strings that set fields, these strings in pairs,
 * then the names of fields to remove.
 *
 * HSET comes first in every script: a server that is out of memory refuses only this command, and only as the first
 * change of a script. So either nothing is changed or everything is.
 */
const change = `
local function change(key)
  local last = 2 + tonumber(ARGV[2])
  for first = 3, last, 1000 do
    redis.call('HSET', key, unpack(ARGV, first, math.min(first + 999, last)))
  end
  for first = last + 1, #ARGV, 1000 do
    redis.call('HDEL', key, unpack(ARGV, first, math.min(first + 999, #ARGV)))
  end
  if ARGV[1] ~= '' then redis.call('PEXPIRE', key, ARGV[1]) end
end`

/** KEYS: the session. */
const createScript = `${change}
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('DEL', KEYS[1]) end
change(KEYS[1])`

/** KEYS: the session. Returns 1, or 0 when there is no session. */
const mergeScript = `${change}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
change(KEYS[1])
return 1`

/** KEYS: the session, its new key. Returns 1, or 0 when there is no session. */
const renameScript = `${change}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
change(KEYS[1])
redis.call('RENAME', KEYS[1], KEYS[2])
return 1`

/** A store. When the server is away, its functions reject with HttpError 503 `shared_away`. */
export class RedisSessionStore implements SessionStore {
  readonly #options: RedisSessionStoreOptions
  readonly #scripts: { readonly [Name in 'read' | 'create' | 'merge' | 'rename']: RedisScript }
  #damaged = 0

  constructor(options: RedisSessionStoreOptions) {
    this.#options = options
    const { redis } = options
    this.#scripts = {
      read: redis.script(readScript),
      create: redis.script(createScript),
      merge: redis.script(mergeScript),
      rename: redis.script(renameScript),
    }
  }

  get counts(): StoreCounts {
    return { evicted: 0, damaged: this.#damaged }
  }

  async read(id: string): Promise<StoredSession | undefined> {
    const key = this.#keyOf(id)
    const reply = await this.#run(this.#scripts.read.run([key]))
    return reply === null ? undefined : this.#sessionIn(reply, key)
  }

  async create(id: string, fields: Fields, ttlMs: number): Promise<void> {
    const values = valuesOf({ ...noChanges, set: fields }, ttlMs, ['v', version])
    await this.#run(this.#scripts.create.run([this.#keyOf(id)], ...values))
  }

  async merge(id: string, changes: FieldChanges, ttlMs: number | undefined): Promise<boolean> {
    const reply = await this.#run(this.#scripts.merge.run([this.#keyOf(id)], ...valuesOf(changes, ttlMs)))
    return integerIn(reply) === 1
  }

  async rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): Promise<boolean> {
    const keys = [this.#keyOf(id), this.#keyOf(newId)]
    const reply = await this.#run(this.#scripts.rename.run(keys, ...valuesOf(changes, ttlMs)))
    return integerIn(reply) === 1
  }

  async destroy(id: string): Promise<void> {
    await this.#run(this.#options.redis.command('DEL', this.#keyOf(id)))
  }

  /** Redis deletes expired sessions. */
  sweep(): number {
    return 0
  }

  close(): void {}

  #keyOf(id: string): string {
    return `${this.#options.prefix}session:${createHash('sha256').update(id).digest('base64url')}`
  }

  #run(reply: Promise<Reply>): Promise<Reply> {
    return answered('a session', reply, this.#options.onProblem)
  }

  #sessionIn(reply: Reply, key: string): StoredSession | undefined {
    const [remaining, pairs] = listIn(reply)
    const remainingMs = integerIn(remaining)
    if (remainingMs === 0) return undefined
    if (remainingMs < 0) return this.#reportDamaged(key, 'it has no expiry')
    const fields = fieldsIn(listIn(pairs))
    if (typeof fields === 'string') return this.#reportDamaged(key, fields)
    const problem = this.#options.problemOf(fields)
    return problem === undefined ? { fields, remainingMs } : this.#reportDamaged(key, problem)
  }

  #reportDamaged(key: string, problem: string): undefined {
    this.#damaged += 1
    this.#options.onProblem(`the session under the key ${key} is damaged and was ignored: ${problem}`)
  }
}

/** Makes the arguments of `change`. */
function valuesOf(
  { set, removed }: FieldChanges,
  ttlMs: number | undefined,
  first: readonly string[] = [],
): Argument[] {
  const pairs = [...first]
  for (const [name, text] of set) pairs.push(fieldOf(name), encoded(text))
  // Redis accepts only whole milliseconds, at least one.
  const time = ttlMs === undefined ? '' : Math.max(1, Math.round(ttlMs))
  return [time, pairs.length, ...pairs, ...[...removed].map(fieldOf)]
}

/** Reads the fields of a hash. Returns a string with the problem if there is one. */
function fieldsIn(pairs: readonly Reply[]): Fields | string {
  const fields = new Map<string, string>()
  let found: string | undefined
  for (let at = 0; at < pairs.length; at += 2) {
    const field = textIn(pairs[at])
    const name = field.startsWith(':') ? decoded(field.slice(1)) : undefined
    const text = decoded(textIn(pairs[at + 1]))
    if (field === 'v') found = text
    else if (name === undefined || text === undefined) return 'it has an unknown field'
    else fields.set(name, text)
  }
  return found === version ? fields : `its version is not ${version}`
}

function fieldOf(name: string): string {
  return `:${encoded(name)}`
}
