/**
 * The primary's part of control: gives the turns, carries changes from the worker that made them to the others and to the
 * other nodes, and those of other nodes to the workers.
 *
 * Surprise: a worker that has not taken up a change is not waited for and not asked again: it is given up, and one that
 * takes its place begins with everything.
 */
import { endsWithin } from '../base/deadline.ts'
import type { Command } from '../control/commands.ts'
import type { Change, WholeCommandType } from '../control/relay.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { TimedTrace } from '../log/timed-trace.ts'
import { isOfAllNodes } from '../nodes/edits.ts'
import type { Nodes, NodesTurn } from '../nodes/contract.ts'
import { KeptChanges, type Missed } from './kept-changes.ts'
import { DisconnectedError, RemoteError, type Peer } from './peer.ts'
import { outcomeOf } from './relay.ts'

/** A worker as control sees it. */
export interface Member {
  /** From 1. */
  readonly number: number
  readonly peer: Peer
  /** Whether it answers requests: one that is still loading takes up changes before it does. */
  readonly serving: boolean
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
  /** The other nodes, where servers share an engine. */
  readonly nodes?: Pick<Nodes, 'turn'> | undefined
  /** How long a worker may take for a change, in milliseconds; 10,000 unless given. */
  readonly patienceMs?: number
}

export interface ControlHost {
  /** Lets a worker take part until its channel closes. Returns what it lacks by now. */
  join(member: Member): Missed
  /** Lets every worker take up a change that nobody made: a trace switch that went back by itself. */
  spread(change: Change): Promise<readonly string[]>
  /**
   * Lets every worker take up a change of another node, one before the others: what is wrong with it shows before it can
   * do harm. Resolves with a line for each that has not taken it up and is given up; rejects when the first could not.
   */
  takeUp(change: Change): Promise<readonly string[]>
}

interface Turn {
  readonly member: Member
  readonly begin: () => void
  readonly fail: (error: unknown) => void
  /** The turn of all nodes, once it is had. */
  ofNodes?: NodesTurn
  /** The change that was made in it, once it is on its way to all. */
  shared?: Promise<unknown>
}

/** What is loading takes a change up when it has loaded, which may take long: as good as for ever. */
const bootMs = 2 ** 31 - 1

/** Makes the primary's part. */
export function createControlHost(options: ControlHostOptions): ControlHost {
  const { log, nodes, trace, patienceMs = 10_000 } = options
  const members = new Set<Member>()
  const turns: Turn[] = []
  const kept = new KeptChanges()

  /** The first of the list has the turn. */
  function beginFirst(): void {
    const [first] = turns
    if (first === undefined) return
    if (nodes === undefined) return first.begin()
    nodes.turn().then(
      (ofNodes) => {
        if (turns[0] !== first) return ofNodes.end() // It has left.
        first.ofNodes = ofNodes
        first.begin()
      },
      (error: unknown) => {
        first.fail(error)
        endTurn(first)
      },
    )
  }

  function endTurn(turn: Turn | undefined): void {
    if (turn === undefined || turns[0] !== turn) return
    turns.shift()
    turn.ofNodes?.end()
    beginFirst()
  }

  async function leave(member: Member): Promise<void> {
    members.delete(member)
    const [first] = turns
    for (let at = turns.length - 1; at > 0; at -= 1) if (turns[at]?.member === member) turns.splice(at, 1)
    if (first?.member !== member) return
    if (first.shared === undefined) {
      log.warn(`process ${member.number} ended in the middle of a change: reload the routes to be sure that all processes agree`)
    }
    await first.shared?.catch(() => undefined) // Who shared it is gone.
    endTurn(first)
  }

  function keep(change: Change, from?: Member): void {
    const { command } = change
    kept.add(change)
    if (command.type === 'trace.set') {
      const { module, enabled, ttlSeconds } = command as Command<'trace.set'>
      trace.set(module, enabled, nodes === undefined ? ttlSeconds : undefined) // Each node sets it back by itself.
    }
    options.onChange(change, from)
  }

  /** Rejects with what the worker says, or that it is gone or does not answer. */
  async function tell(member: Member, change: Change, withinMs: number): Promise<void> {
    if (await endsWithin(withinMs, member.peer.call('control.follow', change))) return
    throw new Error(`it did not answer within ${withinMs / 1000} s`)
  }

  /** The line of a worker that has not taken up a change, which is given up; undefined: who takes its place begins with it. */
  function giveUp(member: Member, { command }: Change, error: unknown): string | undefined {
    if (error instanceof DisconnectedError) return undefined
    const line = `process ${member.number}: ${(error as Error).message}`
    log.error(`${command.type} was not taken up by ${line}`)
    options.onDiverged(member)
    return line
  }

  async function tellAll(others: readonly Member[], change: Change): Promise<readonly string[]> {
    const told = others.map((member) =>
      tell(member, change, member.serving ? patienceMs : bootMs).then(
        () => undefined,
        (error: unknown) => giveUp(member, change, error),
      ),
    )
    const lines = await Promise.all(told.filter((_, at) => others[at]?.serving)) // The others take it up before they serve.
    return lines.filter((line) => line !== undefined)
  }

  async function shareFrom(from: Member | undefined, change: Change): Promise<readonly string[]> {
    const turn = turns[0]?.member === from ? turns[0]?.ofNodes : undefined
    const recorded = turn !== undefined && isOfAllNodes(change) ? await turn.record(change) : undefined
    keep(change, from)
    const others = [...members].filter((member) => member !== from)
    const lines = await Promise.all([tellAll(others, change), recorded?.missing ?? []])
    return lines.flat()
  }

  async function takeUp(change: Change): Promise<readonly string[]> {
    const lines: (string | undefined)[] = []
    const asked = new Set<Member>()
    let rest = change
    for (const member of [...members].filter(({ serving }) => serving)) {
      asked.add(member)
      try {
        await tell(member, change, patienceMs)
        rest = withoutFiles(change)
        break
      } catch (error) {
        if (error instanceof RemoteError) throw error
        lines.push(giveUp(member, change, error))
      }
    }
    keep(rest)
    lines.push(...(await tellAll([...members].filter((member) => !asked.has(member)), rest)))
    return lines.filter((line) => line !== undefined)
  }

  return {
    join: (member) => {
      const { peer } = member
      members.add(member)
      void peer.closed.then(() => leave(member))
      peer.on('control.turn', () => {
        const given = new Promise<boolean>((resolve, reject) => {
          turns.push({ member, begin: () => resolve(true), fail: reject })
          if (turns.length === 1) beginFirst()
        })
        return outcomeOf(given)
      })
      peer.on('control.end', () => endTurn(turns[0]?.member === member ? turns[0] : undefined))
      peer.on('control.share', (change) => {
        const shared = outcomeOf(shareFrom(member, change as Change))
        if (turns[0]?.member === member) turns[0].shared = shared
        return shared
      })
      peer.on('control.ask', (command) => options.ask(command as Command<WholeCommandType>))
      return kept.missed
    },
    spread: (change) => shareFrom(undefined, change),
    takeUp,
  }
}

/** One worker has changed the files of this machine; the others must not do so again. */
function withoutFiles({ inFiles: _, ...change }: Change): Change {
  return change
}
