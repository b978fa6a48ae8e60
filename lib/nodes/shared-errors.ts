/**
 * The errors of all nodes. Each node writes its errors into the shared engine, at most every five seconds and only when
 * they have changed, and reads those of the others when a page requests them. Clearing them writes a time: each node
 * forgets the groups that it has not seen since.
 */
import { performance } from 'node:perf_hooks'
import { isObject } from '../base/object.ts'
import type { ErrorGroup } from '../log/error-groups.ts'
import type { Redis } from '../redis/client.ts'
import { listIn, textIn } from '../redis/reply.ts'

interface SharedErrorsOptions {
  readonly redis: Redis
  /** The prefix of the keys; the id of a node follows. */
  readonly prefix: string
  /** The id of this node. */
  readonly id: string
  /** Returns the errors of the processes of this node. */
  local(): Promise<readonly ErrorGroup[]>
  /** Forgets the errors not seen after a time, in milliseconds since 1970. */
  clearLocal(beforeMs: number): Promise<unknown>
}

const everyMs = 5000
/** How long the errors of an ended node are shown. */
const keptSeconds = 7200
/** A node shares only its newest groups. */
const sharedGroups = 50

/** The errors of one node and of the others. */
export class SharedErrors {
  readonly #options: SharedErrorsOptions
  readonly #clearedKey: string
  readonly #ownKey: string
  #written = '[]'
  /** The clear time in the engine that this node has already applied. */
  #cleared = ''
  #dueAt = 0

  constructor(options: SharedErrorsOptions) {
    this.#options = options
    this.#clearedKey = `${options.prefix}cleared`
    this.#ownKey = options.prefix + options.id
  }

  /** Writes this node's errors when they are due. Rejects as the engine's client does. */
  async sync(): Promise<void> {
    const { redis, local, clearLocal } = this.#options
    const nowMs = performance.now()
    if (nowMs < this.#dueAt) return
    this.#dueAt = nowMs + everyMs
    let groups = await local()
    if (groups.length === 0 && this.#written === '[]') return
    const cleared = textOf(await redis.command('GET', this.#clearedKey))
    if (cleared !== this.#cleared) {
      await clearLocal(Number(cleared))
      groups = await local()
    }
    this.#cleared = cleared
    const text = JSON.stringify(groups.slice(0, sharedGroups))
    const isKept = text === this.#written && (await redis.command('EXPIRE', this.#ownKey, String(keptSeconds))) === 1
    if (isKept) return
    await redis.command('SET', this.#ownKey, text, 'EX', String(keptSeconds)) // The next sync retries a failure.
    this.#written = text
  }

  /** Returns the groups of other nodes, a list each. Rejects as the engine's client does. @param ids of the nodes */
  async ofOthers(ids: readonly string[]): Promise<readonly ErrorGroup[][]> {
    const { redis, prefix, id: self } = this.#options
    const keys = ids.filter((id) => id !== self).map((id) => prefix + id)
    if (keys.length === 0) return []
    return listIn(await redis.command('MGET', ...keys)).map((text) => groupsIn(textOf(text)))
  }

  /** Clears the errors of all nodes except this one. Rejects as the engine's client does. @param ids of the nodes */
  async clearOthers(ids: readonly string[], nowMs: number): Promise<void> {
    const { redis, prefix } = this.#options
    const cleared = String(Math.round(nowMs))
    await redis.command('SET', this.#clearedKey, cleared)
    this.#cleared = cleared
    if (ids.length > 0) await redis.command('DEL', ...ids.map((id) => prefix + id))
    this.#written = '[]'
  }
}

function textOf(reply: unknown): string {
  return reply === null || reply === undefined ? '' : textIn(reply as Parameters<typeof textIn>[0])
}

/** Parses the groups of another node. Other programs may have written them, so anything else is skipped. */
function groupsIn(text: string): ErrorGroup[] {
  try {
    const list: unknown = JSON.parse(text)
    return Array.isArray(list) ? list.filter(isGroup) : []
  } catch {
    return []
  }
}

function isGroup(value: unknown): value is ErrorGroup {
  if (!isObject(value)) return false
  const isListOf = (name: string, type: string): boolean => {
    const list = value[name]
    return Array.isArray(list) && list.every((each) => typeof each === type)
  }
  return (
    ['place', 'message', 'stack'].every((name) => typeof value[name] === 'string')
    && ['count', 'first_at', 'last_at'].every((name) => Number.isFinite(value[name]))
    && isListOf('routes', 'string')
    && isListOf('requests', 'string')
    && isListOf('minutes', 'number')
  )
}
