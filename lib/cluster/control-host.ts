/**
 * The primary's part of control: gives the turns, carries changes from the worker that made them to the others, and
 * keeps what a worker that comes later lacks.
 *
 * Surprise: a worker that has not taken up a change is not waited for and not asked again: it is given up, and one that
 * takes its place begins with everything.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from '../control/commands.ts'
import type { AdminState, Change, WholeCommandType } from '../control/relay.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { TimedTrace } from '../log/timed-trace.ts'
import { withChange } from './missed-changes.ts'
import { DisconnectedError, type Peer } from './peer.ts'

/** A worker as control sees it. */
export interface Member {
  /** From 1. */
  readonly number: number
  readonly peer: Peer
  /** Whether it answers requests: one that is still loading takes up changes before it does. */
  readonly serving: boolean
}

/** What a worker that comes later takes up after it has loaded its files. */
export interface Missed {
  /** The routes that were added and removed one by one since the last reload, in order. */
  readonly changes: readonly Change[]
  /** The admin's credentials, where they were made since the start. */
  readonly admin?: AdminState
}

export interface ControlHostOptions {
  readonly log: ModuleLogger
  /** Switches the trace of the primary. */
  readonly trace: Pick<TimedTrace, 'set'>
  /** Called with each change, and with who made it, before the others are told of it. */
  readonly onChange: (change: Change, from: Member | undefined) => void
  /** Carries out what is about all processes. */
  readonly ask: (command: Command<WholeCommandType>) => void
  /** Called with a worker that is no longer as the others are. */
  readonly onDiverged: (member: Member) => void
  /** How long a worker may take for a change, in milliseconds; 10,000 unless given. */
  readonly patienceMs?: number
}

export interface ControlHost {
  /** Lets a worker take part until its channel closes. Returns what it lacks by now. */
  join(member: Member): Missed
  /** Lets every worker take up a change that nobody made: a trace switch that went back by itself. */
  spread(change: Change): Promise<readonly string[]>
}

interface Turn {
  readonly member: Member
  readonly begin: () => void
  /** The change that was made in it, once it is on its way to all. */
  shared?: Promise<unknown>
}

/** What is loading takes a change up when it has loaded, which may take long: as good as for ever. */
const bootMs = 2 ** 31 - 1

/** Makes the primary's part. */
export function createControlHost(options: ControlHostOptions): ControlHost {
  const { log, trace, patienceMs = 10_000 } = options
  const members = new Set<Member>()
  const turns: Turn[] = []
  let changes: readonly Change[] = []
  let admin: AdminState | undefined

  /** The first of the list has the turn. */
  function endTurn(of: Member): void {
    if (turns[0]?.member !== of) return
    turns.shift()
    turns[0]?.begin()
  }

  async function leave(member: Member): Promise<void> {
    members.delete(member)
    const turn = turns[0]
    for (let at = turns.length - 1; at > 0; at -= 1) if (turns[at]?.member === member) turns.splice(at, 1)
    if (turn?.member !== member) return
    if (turn.shared === undefined) {
      log.warn(`process ${member.number} ended in the middle of a change: reload the routes to be sure that all processes agree`)
    }
    await turn.shared?.catch(() => undefined) // Who shared it is gone.
    endTurn(member)
  }

  function keep(change: Change): void {
    const { command } = change
    if (change.admin !== undefined) admin = change.admin
    changes = withChange(changes, change)
    if (command.type === 'trace.set') {
      const { module, enabled, ttlSeconds } = command as Command<'trace.set'>
      trace.set(module, enabled, ttlSeconds)
    }
  }

  async function takeUp(member: Member, change: Change, withinMs: number): Promise<string | undefined> {
    const patience = new AbortController()
    const late = delay(withinMs, undefined, { signal: patience.signal }).then(
      () => Promise.reject(new Error(`it did not answer within ${withinMs / 1000} s`)),
      () => undefined,
    )
    try {
      await Promise.race([member.peer.call('control.follow', change), late])
      return undefined
    } catch (error) {
      if (error instanceof DisconnectedError) return undefined // It is gone: who takes its place begins with this change.
      const line = `process ${member.number}: ${(error as Error).message}`
      log.error(`${change.command.type} was not taken up by ${line}`)
      options.onDiverged(member)
      return line
    } finally {
      patience.abort()
    }
  }

  async function shareFrom(from: Member | undefined, change: Change): Promise<readonly string[]> {
    keep(change)
    options.onChange(change, from)
    const others = [...members].filter((member) => member !== from)
    const waited = others.filter((member) => member.serving)
    for (const member of others) if (!member.serving) void takeUp(member, change, bootMs)
    const lines = await Promise.all(waited.map((member) => takeUp(member, change, patienceMs)))
    return lines.filter((line) => line !== undefined)
  }

  return {
    join: (member) => {
      const { peer } = member
      members.add(member)
      void peer.closed.then(() => leave(member))
      peer.on('control.turn', () => {
        return new Promise<void>((begin) => {
          turns.push({ member, begin })
          if (turns.length === 1) begin()
        })
      })
      peer.on('control.end', () => endTurn(member))
      peer.on('control.share', (change) => {
        const shared = shareFrom(member, change as Change)
        if (turns[0]?.member === member) turns[0].shared = shared
        return shared
      })
      peer.on('control.ask', (command) => options.ask(command as Command<WholeCommandType>))
      return { changes, ...(admin !== undefined && { admin }) }
    },
    spread: (change) => shareFrom(undefined, change),
  }
}
