/**
 * Who is there: the members of channels, over all processes that share events.
 *
 * Each process knows the connections of its own and tells the others, by the channel `svc.presence`, which members come
 * and go with them. A member is there while a process has it; one whose last connection has ended stays for 10 s, so
 * that a reload of the page is not seen. A stream ends within a minute, and its client reconnects unless it has
 * vanished. Changes are gathered for a moment: a thousand who come are one message.
 *
 * A process says every 3 s that it is there, with the number of its last change. One that has missed a change asks for
 * the whole list; a process that was silent for 12 s is gone, and its members with it.
 */
import { randomBytes } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { jsonText } from '../base/json-text.ts'
import { isObject } from '../base/object.ts'
import type { Channel } from '../events/channel.ts'
import { whenLive, type LiveEnd } from '../events/live-end.ts'
import type { CoreContext } from '../http/context.ts'

/** A member, as the application gives it. */
export interface Member {
  readonly id: string | number
  readonly [name: string]: unknown
}

/** What a process has told. */
type News =
  | { readonly from: string; readonly type: 'alive'; readonly version: number }
  | { readonly from: string; readonly type: 'ask'; readonly of?: string }
  | { readonly from: string; readonly type: 'list'; readonly version: number; readonly rooms: readonly RoomNews[] }
  | { readonly from: string; readonly type: 'change'; readonly version: number; readonly rooms: readonly RoomNews[] }

/** The members of a channel that came with a process, and the ids of those that went. */
interface RoomNews {
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
 * The longest life in milliseconds of a stream with presence; the shortest is three quarters of it. The system goes on
 * sending to a client that has vanished for a quarter of an hour, and Node does not tell it from one that is there.
 */
const renewMs = 60_000

/** A member and who has it. */
interface Present {
  member: Member
  /** The other processes that have it. */
  readonly others: Set<string>
  /** The connections of this process. */
  connections: number
  /** Set while the last connection of this process has ended a moment ago. */
  leaving: NodeJS.Timeout | undefined
}

/** The members of one channel, and the open replies of this process that are told of them. */
class Room {
  readonly members = new Map<Member['id'], Present>()
  readonly ends = new Set<LiveEnd>()
  readonly joined = new Map<Member['id'], Member>()
  readonly left = new Map<Member['id'], Member>()

  /** Takes a member in. Notes that it has come or has changed, unless it was gone for a moment only. */
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
  readonly #own = randomBytes(9).toString('base64url')
  /** By channel and id: what the other processes are to be told. Undefined: the member has left. */
  readonly #changes = new Map<string, Map<Member['id'], Member | undefined>>()
  #bus: Channel | undefined
  #version = 0
  #telling: NodeJS.Timeout | undefined
  #beating: NodeJS.Timeout | undefined
  #isClosed = false

  /**
   * @param openBus opens the channel to the other processes; undefined where there are none
   * @param renewAfterMs the longest life of a stream with presence, in milliseconds; 60,000 unless given
   */
  constructor(openBus: (() => Channel) | undefined, renewAfterMs = renewMs) {
    this.#openBus = openBus
    this.#renewAfterMs = renewAfterMs
  }

  /**
   * Makes the client of a stream or WebSocket a member of a channel while it is open, and tells it of the others.
   * @throws TypeError for a member that has no id, that JSON cannot hold, or that takes more than 1 KiB as JSON
   */
  add(ctx: CoreContext, { name }: Channel, member: Member): void {
    checkMember(name, member)
    whenLive(ctx, (end) => this.#begin(name, member, end))
  }

  /** Ends the timers. Connections that begin or end after it change nothing. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#telling)
    clearInterval(this.#beating)
    for (const { members } of this.#rooms.values()) for (const { leaving } of members.values()) clearTimeout(leaving)
    this.#rooms.clear()
  }

  #begin(name: string, member: Member, end: LiveEnd): void {
    if (this.#isClosed) return
    this.#connect()
    const room = this.#room(name)
    const { present, isChanged } = room.join(member)
    const isNews = isChanged || !isHere(present)
    clearTimeout(present.leaving)
    present.leaving = undefined
    present.connections += 1
    if (isNews) this.#note(name, member.id, member)
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
        this.#note(name, member.id, undefined)
        if (present.others.size === 0) room.leave(present.member)
      }, graceMs).unref()
    })
  }

  #room(name: string): Room {
    const room = this.#rooms.get(name) ?? new Room()
    this.#rooms.set(name, room)
    return room
  }

  /** Notes a change of this process for the others, and that something is to be told. */
  #note(channel: string, id: Member['id'], member: Member | undefined): void {
    const changes = this.#changes.get(channel) ?? new Map<Member['id'], Member | undefined>()
    this.#changes.set(channel, changes.set(id, member))
    this.#tellSoon()
  }

  #tellSoon(): void {
    this.#telling ??= setTimeout(() => this.#tell(), gatherMs).unref()
  }

  /** Tells clients and other processes what has changed since the last time. */
  #tell(): void {
    this.#telling = undefined
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
      this.#publish({ from: this.#own, type: 'change', version: this.#version, rooms })
    }
    this.#changes.clear()
  }

  // ---- other processes ----

  #connect(): void {
    if (this.#openBus === undefined || this.#bus !== undefined) return
    this.#bus = this.#openBus()
    const { name, services } = this.#bus
    this.#bus.subscribe(({ id, data }) => {
      const news = newsIn(data)
      if (news === undefined) services.logDamaged(`channel "${name}": ignored event ${id}: it is no news of presence`)
      else this.#hear(news)
    })
    this.#publish({ from: this.#own, type: 'ask' })
    this.#beating = setInterval(() => this.#beat(), aliveMs).unref()
  }

  #publish(news: News): void {
    void this.#bus?.publish(news)
  }

  #beat(): void {
    this.#publish({ from: this.#own, type: 'alive', version: this.#version })
    for (const [id, { heardAtMs }] of this.#others) {
      if (performance.now() - heardAtMs > silentMs) this.#forget(id)
    }
  }

  #hear(news: News): void {
    const { from, type } = news
    if (from === this.#own) return
    if (type === 'ask') return this.#answer(news.of)
    const other = this.#others.get(from)
    const isNext = other !== undefined && news.version === other.version + (type === 'change' ? 1 : 0)
    if (type === 'list') this.#dropMembersOf(from)
    if (type === 'list' || isNext) {
      this.#others.set(from, { version: news.version, heardAtMs: performance.now() })
      if (type !== 'alive') for (const room of news.rooms) this.#apply(from, room)
      return
    }
    if (other !== undefined) other.heardAtMs = performance.now()
    this.#publish({ from: this.#own, type: 'ask', of: from })
  }

  /** Answers a process that asks for all members that this one has. */
  #answer(of: string | undefined): void {
    if (of !== undefined && of !== this.#own) return
    const rooms = [...this.#rooms].flatMap(([channel, { members }]) => {
      const joined = [...members.values()].flatMap((one) => (isHere(one) ? [one.member] : []))
      return joined.length === 0 ? [] : [{ channel, joined, left: [] }]
    })
    this.#changes.clear() // The list has them.
    this.#publish({ from: this.#own, type: 'list', version: this.#version, rooms })
  }

  #apply(from: string, { channel, joined, left }: RoomNews): void {
    const room = this.#room(channel)
    for (const member of joined) room.join(member).present.others.add(from)
    for (const id of left) this.#drop(room, id, from)
    this.#tellSoon()
  }

  #drop(room: Room, id: Member['id'], from: string): void {
    const present = room.members.get(id)
    if (present?.others.delete(from) !== true || present.others.size > 0 || isHere(present)) return
    room.leave(present.member)
  }

  #dropMembersOf(from: string): void {
    for (const room of this.#rooms.values()) for (const id of [...room.members.keys()]) this.#drop(room, id, from)
    this.#tellSoon()
  }

  #forget(from: string): void {
    this.#others.delete(from)
    this.#dropMembersOf(from)
  }
}

/** Whether this process has a member, or had it a moment ago. */
function isHere({ connections, leaving }: Present): boolean {
  return connections > 0 || leaving !== undefined
}

function isSame(one: Member, other: Member): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Reads what another process has told; undefined for anything else. */
function newsIn(data: unknown): News | undefined {
  if (!isObject(data) || typeof data['from'] !== 'string') return undefined
  const { type, of, version, rooms } = data
  if (type === 'ask') return of === undefined || typeof of === 'string' ? (data as unknown as News) : undefined
  if (!Number.isSafeInteger(version)) return undefined
  const isOfRooms = (type === 'list' || type === 'change') && Array.isArray(rooms) && rooms.every(isRoomNews)
  return type === 'alive' || isOfRooms ? (data as unknown as News) : undefined // Every member has been checked.
}

function isRoomNews(value: unknown): boolean {
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

/** Returns what is wrong with a member; undefined for a right one. @param toText makes its JSON */
function problemOf(member: unknown, toText: (member: unknown) => string = JSON.stringify): string | undefined {
  const id = (member as Partial<Member> | null | undefined)?.id
  if (!isMemberId(id)) return 'give an object with an id, a text or a number'
  return Buffer.byteLength(toText(member)) > mostBytes ? `it takes more than ${mostBytes} bytes` : undefined
}

function checkMember(channel: string, member: Member): void {
  const refused = `Cannot add a member to channel "${channel}"`
  const problem = problemOf(member, (value) => jsonText(value, `${refused}: JSON cannot hold the member`))
  if (problem !== undefined) throw new TypeError(`${refused}: ${problem}`)
}
