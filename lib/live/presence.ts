/**
 * Presence: the members of channels, across all processes that share events.
 *
 * Each process tracks its connections and publishes on the channel `svc.presence` which members join and leave with
 * them. A member is present while a process has it, and leaves 10 s after its last connection has ended, so that a page
 * reload goes unnoticed. A stream ends within a minute, and its client reconnects unless it has vanished. Changes are
 * batched: a thousand members that join at once are one message.
 *
 * Every 3 s a process publishes a heartbeat with the number of its last change. A process that missed a change requests
 * the full list. A process that was silent for 12 s is removed together with its members.
 */
import { randomBytes } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { jsonText } from '../base/json-text.ts'
import { isObject } from '../base/object.ts'
import type { Channel } from '../events/channel.ts'
import { whenOpen, type ReplySender } from '../events/reply-sender.ts'
import type { CoreContext } from '../http/context.ts'

/** A member, as passed by the application. */
export interface Member {
  readonly id: string | number
  readonly [name: string]: unknown
}

/** A message of a process. */
type Message =
  | { readonly from: string; readonly type: 'alive'; readonly version: number }
  | { readonly from: string; readonly type: 'ask'; readonly of?: string }
  | { readonly from: string; readonly type: 'list'; readonly version: number; readonly rooms: readonly RoomChanges[] }
  | { readonly from: string; readonly type: 'change'; readonly version: number; readonly rooms: readonly RoomChanges[] }

/** The members of a channel that joined in a process, and the ids of those that left. */
interface RoomChanges {
  readonly channel: string
  readonly joined: readonly Member[]
  readonly left: readonly Member['id'][]
}

/** Another process. */
interface Other {
  version: number
  heardAtMs: number
}

const mostBytes = 1024
const gatherMs = 100
const aliveMs = 3000
const silentMs = 12_000
const graceMs = 10_000
/**
 * The maximum life of a stream with presence, in milliseconds; the minimum is three quarters of it. The system keeps
 * sending to a vanished client for a quarter of an hour, and Node cannot distinguish it from a connected one.
 */
const renewMs = 60_000

/** A member and the processes that have it. */
interface Present {
  member: Member
  /** The other processes that have it. */
  readonly others: Set<string>
  /** The connections of this process. */
  connections: number
  /** Set for a while after the last connection in this process has ended. */
  leaving: NodeJS.Timeout | undefined
}

/** The members of one channel, and the open replies of this process that receive them. */
class Room {
  readonly members = new Map<Member['id'], Present>()
  readonly ends = new Set<ReplySender>()
  readonly joined = new Map<Member['id'], Member>()
  readonly left = new Map<Member['id'], Member>()

  /** Adds a member. Records that it has joined or changed, unless it was away only briefly. */
  join(member: Member): { present: Present; isChanged: boolean } {
    const known = this.members.get(member.id)
    const present = known ?? { member, others: new Set(), connections: 0, leaving: undefined }
    const isChanged = known === undefined || !isSame(known.member, member)
    present.member = member
    this.members.set(member.id, present)
    if (!isChanged) return { present, isChanged }
    const gone = this.left.get(member.id)
    this.left.delete(member.id)
    if (gone === undefined || !isSame(gone, member)) this.joined.set(member.id, member)
    return { present, isChanged }
  }

  leave(member: Member): void {
    this.members.delete(member.id)
    if (!this.joined.delete(member.id)) this.left.set(member.id, member)
  }
}

/** The presence of one process. */
export class Presence {
  readonly #rooms = new Map<string, Room>()
  readonly #others = new Map<string, Other>()
  readonly #openBus: (() => Channel) | undefined
  readonly #renewAfterMs: number
  readonly #id = randomBytes(9).toString('base64url')
  /** The changes to publish, by channel and id. Undefined: the member has left. */
  readonly #changes = new Map<string, Map<Member['id'], Member | undefined>>()
  #bus: Channel | undefined
  #version = 0
  #sendTimer: NodeJS.Timeout | undefined
  #beatTimer: NodeJS.Timeout | undefined
  #isClosed = false

  /**
   * @param openBus opens the channel to the other processes; undefined when there are none
   * @param renewAfterMs the longest life of a stream with presence, in milliseconds; by default 60,000
   */
  constructor(openBus: (() => Channel) | undefined, renewAfterMs = renewMs) {
    this.#openBus = openBus
    this.#renewAfterMs = renewAfterMs
  }

  /**
   * Makes the client of a stream or WebSocket a member of a channel while it is open, and sends it the members.
   * @throws TypeError for a member that has no id, is not JSON, or takes more than 1 KiB as JSON
   */
  add(ctx: CoreContext, { name }: Channel, member: Member): void {
    checkMember(name, member)
    whenOpen(ctx, (end) => this.#begin(name, member, end))
  }

  /** Stops the timers. Connections that open or close afterwards have no effect. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#sendTimer)
    clearInterval(this.#beatTimer)
    for (const { members } of this.#rooms.values()) for (const { leaving } of members.values()) clearTimeout(leaving)
    this.#rooms.clear()
  }

  #begin(name: string, member: Member, end: ReplySender): void {
    if (this.#isClosed) return
    this.#connect()
    const room = this.#room(name)
    const { present, isChanged } = room.join(member)
    const mustPublish = isChanged || !isHere(present)
    clearTimeout(present.leaving)
    present.leaving = undefined
    present.connections += 1
    if (mustPublish) this.#record(name, member.id, member)
    end.send('presence', textOf('list', [...room.members.values()].map((one) => one.member)))
    room.ends.add(end)
    const renewing = end.renew && setTimeout(end.renew, this.#renewAfterMs * (1 - Math.random() / 4)).unref()
    end.onClose(() => {
      clearTimeout(renewing)
      room.ends.delete(end)
      present.connections -= 1
      if (present.connections > 0 || this.#isClosed) return
      present.leaving = setTimeout(() => {
        present.leaving = undefined
        this.#record(name, member.id, undefined)
        if (present.others.size === 0) room.leave(present.member)
      }, graceMs).unref()
    })
  }

  #room(name: string): Room {
    const room = this.#rooms.get(name) ?? new Room()
    this.#rooms.set(name, room)
    return room
  }

  /** Records a change of this process for the others, and schedules sending it. */
  #record(channel: string, id: Member['id'], member: Member | undefined): void {
    const changes = this.#changes.get(channel) ?? new Map<Member['id'], Member | undefined>()
    this.#changes.set(channel, changes.set(id, member))
    this.#sendSoon()
  }

  #sendSoon(): void {
    this.#sendTimer ??= setTimeout(() => this.#send(), gatherMs).unref()
  }

  /** Sends the changes since the last call to clients and other processes. */
  #send(): void {
    this.#sendTimer = undefined
    for (const [name, room] of this.#rooms) {
      for (const [type, some] of [['join', room.joined], ['leave', room.left]] as const) {
        if (some.size === 0) continue
        const text = textOf(type, [...some.values()])
        for (const end of room.ends) end.send('presence', text)
        some.clear()
      }
      if (room.members.size === 0 && room.ends.size === 0) this.#rooms.delete(name)
    }
    if (this.#changes.size > 0) {
      this.#version += 1
      const rooms = [...this.#changes].map(([channel, changes]) => {
        const joined = [...changes.values()].filter((member) => member !== undefined)
        return { channel, joined, left: [...changes.keys()].filter((id) => changes.get(id) === undefined) }
      })
      this.#publish({ from: this.#id, type: 'change', version: this.#version, rooms })
    }
    this.#changes.clear()
  }

  // ---- other processes ----

  #connect(): void {
    if (this.#openBus === undefined || this.#bus !== undefined) return
    this.#bus = this.#openBus()
    const { name, services } = this.#bus
    this.#bus.subscribe(({ id, data }) => {
      const message = messageIn(data)
      if (message === undefined) services.logDamaged(`channel "${name}": ignored event ${id}: not a presence message`)
      else this.#receive(message)
    })
    this.#publish({ from: this.#id, type: 'ask' })
    this.#beatTimer = setInterval(() => this.#beat(), aliveMs).unref()
  }

  #publish(message: Message): void {
    void this.#bus?.publish(message)
  }

  #beat(): void {
    this.#publish({ from: this.#id, type: 'alive', version: this.#version })
    for (const [id, { heardAtMs }] of this.#others) {
      if (performance.now() - heardAtMs > silentMs) this.#forget(id)
    }
  }

  #receive(message: Message): void {
    const { from, type } = message
    if (from === this.#id) return
    if (type === 'ask') return this.#answer(message.of)
    const other = this.#others.get(from)
    const isNext = other !== undefined && message.version === other.version + (type === 'change' ? 1 : 0)
    if (type === 'list') this.#dropMembersOf(from)
    if (type === 'list' || isNext) {
      this.#others.set(from, { version: message.version, heardAtMs: performance.now() })
      if (type !== 'alive') for (const room of message.rooms) this.#apply(from, room)
      return
    }
    if (other !== undefined) other.heardAtMs = performance.now()
    this.#publish({ from: this.#id, type: 'ask', of: from })
  }

  /** Answers a process that requests all members of this one. */
  #answer(of: string | undefined): void {
    if (of !== undefined && of !== this.#id) return
    const rooms = [...this.#rooms].flatMap(([channel, { members }]) => {
      const joined = [...members.values()].flatMap((one) => (isHere(one) ? [one.member] : []))
      return joined.length === 0 ? [] : [{ channel, joined, left: [] }]
    })
    this.#changes.clear() // The list includes them.
    this.#publish({ from: this.#id, type: 'list', version: this.#version, rooms })
  }

  #apply(from: string, { channel, joined, left }: RoomChanges): void {
    const room = this.#room(channel)
    for (const member of joined) room.join(member).present.others.add(from)
    for (const id of left) this.#drop(room, id, from)
    this.#sendSoon()
  }

  #drop(room: Room, id: Member['id'], from: string): void {
    const present = room.members.get(id)
    if (present?.others.delete(from) !== true || present.others.size > 0 || isHere(present)) return
    room.leave(present.member)
  }

  #dropMembersOf(from: string): void {
    for (const room of this.#rooms.values()) for (const id of [...room.members.keys()]) this.#drop(room, id, from)
    this.#sendSoon()
  }

  #forget(from: string): void {
    this.#others.delete(from)
    this.#dropMembersOf(from)
  }
}

/** Whether this process has a member, or had it until a moment ago. */
function isHere({ connections, leaving }: Present): boolean {
  return connections > 0 || leaving !== undefined
}

function isSame(one: Member, other: Member): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Parses a message of another process; undefined for anything else. */
function messageIn(data: unknown): Message | undefined {
  if (!isObject(data) || typeof data['from'] !== 'string') return undefined
  const { type, of, version, rooms } = data
  if (type === 'ask') return of === undefined || typeof of === 'string' ? (data as unknown as Message) : undefined
  if (!Number.isSafeInteger(version)) return undefined
  const isOfRooms = (type === 'list' || type === 'change') && Array.isArray(rooms) && rooms.every(isRoomChanges)
  return type === 'alive' || isOfRooms ? (data as unknown as Message) : undefined // Every member has been checked.
}

function isRoomChanges(value: unknown): boolean {
  if (!isObject(value) || typeof value['channel'] !== 'string') return false
  const { joined, left } = value
  if (!Array.isArray(joined) || !Array.isArray(left)) return false
  return joined.every((member) => problemOf(member) === undefined) && left.every(isMemberId)
}

function isMemberId(id: unknown): id is Member['id'] {
  return typeof id === 'number' || (typeof id === 'string' && id !== '')
}

function textOf(type: 'list' | 'join' | 'leave', members: readonly Member[]): string {
  return JSON.stringify({ type, members })
}

/** Returns what is wrong with a member; undefined when it is valid. @param toText converts it to JSON */
function problemOf(member: unknown, toText: (member: unknown) => string = JSON.stringify): string | undefined {
  const id = (member as Partial<Member> | null | undefined)?.id
  if (!isMemberId(id)) return 'pass an object whose id is a string or a number'
  return Buffer.byteLength(toText(member)) > mostBytes ? `it takes more than ${mostBytes} bytes` : undefined
}

function checkMember(channel: string, member: Member): void {
  const refused = `Cannot add a member to channel "${channel}"`
  const problem = problemOf(member, (value) => jsonText(value, `${refused}: JSON cannot hold the member`))
  if (problem !== undefined) throw new TypeError(`${refused}: ${problem}`)
}
