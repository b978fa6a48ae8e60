/**
 * Sessions in Redis or Valkey, for processes on one machine or on many: a hash each, one command for a read and one for
 * a change. A session expires there by itself.
 *
 * A key holds the SHA-256 of the id, so that a listing of the keys, or a dump, lets nobody in. Fields of the hash are
 * the session's, each behind a colon, and `v`, the version of this form.
 *
 * Surprise: Redis does not tell which keys it dropped to keep its `maxmemory`, so none are counted as evicted.
 */
import { createHash } from 'node:crypto'
import type { FieldChanges, Fields, SessionStore, StoreCounts, StoredSession } from '../session/store.ts'
import { answered } from './away.ts'
import type { Redis } from './client.ts'
import { integerIn, listIn, textIn, type Argument, type Reply } from './reply.ts'
import { createSessionScripts, type SessionScripts } from './session-scripts.ts'
import { decoded, encoded } from './text.ts'

export interface RedisSessionStoreOptions {
  /** It stays open when the store is closed. */
  readonly redis: Redis
  /** What every key begins with, such as `svc:`. */
  readonly prefix: string
  /** What is wrong with the fields that were found; undefined for nothing. Such a session counts as damaged. */
  readonly problemOf: (fields: Fields) => string | undefined
  /** Told of each damaged session, and of each refusal of a server that is there, such as that its memory is full. */
  readonly onProblem: (message: string) => void
}

const version = '1'
const noChanges: FieldChanges = { set: new Map(), removed: new Set() }

/** Makes a store. What fails because the server is away rejects with HttpError 503 `shared_away`. */
export function createRedisSessionStore(options: RedisSessionStoreOptions): SessionStore {
  return new RedisSessionStore(options)
}

class RedisSessionStore implements SessionStore {
  readonly #options: RedisSessionStoreOptions
  readonly #scripts: SessionScripts
  #damaged = 0

  constructor(options: RedisSessionStoreOptions) {
    this.#options = options
    this.#scripts = createSessionScripts(options.redis)
  }

  get counts(): StoreCounts {
    return { evicted: 0, damaged: this.#damaged }
  }

  async read(id: string): Promise<StoredSession | undefined> {
    const key = this.#keyOf(id)
    const reply = await this.#telling(this.#scripts.read.run([key]))
    return reply === null ? undefined : this.#sessionIn(reply, key)
  }

  async create(id: string, fields: Fields, ttlMs: number): Promise<void> {
    const values = valuesOf({ ...noChanges, set: fields }, ttlMs, ['v', version])
    await this.#telling(this.#scripts.create.run([this.#keyOf(id)], ...values))
  }

  async merge(id: string, changes: FieldChanges, ttlMs: number): Promise<boolean> {
    const reply = await this.#telling(this.#scripts.merge.run([this.#keyOf(id)], ...valuesOf(changes, ttlMs)))
    return integerIn(reply) === 1
  }

  async rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): Promise<boolean> {
    const keys = [this.#keyOf(id), this.#keyOf(newId)]
    const reply = await this.#telling(this.#scripts.rename.run(keys, ...valuesOf(changes, ttlMs)))
    return integerIn(reply) === 1
  }

  async destroy(id: string): Promise<void> {
    await this.#telling(this.#options.redis.command('DEL', this.#keyOf(id)))
  }

  /** Redis has removed what expired. */
  sweep(): number {
    return 0
  }

  close(): void {}

  #keyOf(id: string): string {
    return `${this.#options.prefix}session:${createHash('sha256').update(id).digest('base64url')}`
  }

  #telling(reply: Promise<Reply>): Promise<Reply> {
    return answered('a session', reply, this.#options.onProblem)
  }

  #sessionIn(reply: Reply, key: string): StoredSession | undefined {
    const [remaining, pairs] = listIn(reply)
    const remainingMs = integerIn(remaining)
    if (remainingMs === 0) return undefined
    if (remainingMs < 0) return this.#tellDamaged(key, 'it has no end')
    const fields = fieldsIn(listIn(pairs))
    if (typeof fields === 'string') return this.#tellDamaged(key, fields)
    const problem = this.#options.problemOf(fields)
    return problem === undefined ? { fields, remainingMs } : this.#tellDamaged(key, problem)
  }

  #tellDamaged(key: string, problem: string): undefined {
    this.#damaged += 1
    this.#options.onProblem(`the session under the key ${key} is damaged and was ignored: ${problem}`)
  }
}

/** What a change passes on, as `session-scripts.ts` has it. */
function valuesOf({ set, removed }: FieldChanges, ttlMs: number, first: readonly string[] = []): Argument[] {
  const pairs = [...first]
  for (const [name, text] of set) pairs.push(fieldOf(name), encoded(text))
  // Redis takes whole milliseconds, and a session lives for at least one.
  return [Math.max(1, Math.round(ttlMs)), pairs.length, ...pairs, ...[...removed].map(fieldOf)]
}

/** The fields of a hash; as a text what is wrong with it. */
function fieldsIn(pairs: readonly Reply[]): Fields | string {
  const fields = new Map<string, string>()
  let found: string | undefined
  for (let at = 0; at < pairs.length; at += 2) {
    const field = textIn(pairs[at])
    const name = field.startsWith(':') ? decoded(field.slice(1)) : undefined
    const text = decoded(textIn(pairs[at + 1]))
    if (field === 'v') found = text
    else if (name === undefined || text === undefined) return 'it has a field that no session has'
    else fields.set(name, text)
  }
  return found === version ? fields : `its version is not ${version}`
}

function fieldOf(name: string): string {
  return `:${encoded(name)}`
}
