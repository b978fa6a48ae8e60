/**
 * The desired state of a server with several processes. The primary keeps it; workers read and write it over their
 * channels. The primary sends each new state to the workers and collects their answers. Commands about this machine
 * take the same path.
 *
 * A worker that cannot apply a state, or does not answer, is replaced. The new worker starts with the state, so the
 * processes of a server never differ for long.
 */
import { performance } from 'node:perf_hooks'
import type { Machine } from '../control/changes.ts'
import type { Command, MachineCommandType } from '../control/commands.ts'
import type { DesiredState } from '../control/desired-state.ts'
import type { RouteFileChange } from '../control/persisted-routes.ts'
import type { StateStore } from '../control/state-store.ts'
import type { TraceSwitches } from '../control/trace-switches.ts'
import { endsWithin } from '../base/deadline.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { DisconnectedError, RemoteError, type Peer } from './peer.ts'
import { remote, serve, type Remote } from './remote.ts'
import type { WorkerProcess } from './worker-process.ts'

/** A state as the primary sends it, with the current time of the clock that its times refer to. */
export interface TimedState {
  readonly state: DesiredState
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

/** The functions that the primary serves. */
interface ServedByPrimary {
  read(): Promise<TimedState>
  write(next: DesiredState, file: RouteFileChange | null): Promise<boolean>
  missing(state: DesiredState, withinMs: number): Promise<readonly string[]>
  everywhere(command: Command<MachineCommandType>): Promise<readonly string[]>
  applyToServer(command: Command<MachineCommandType>): void
}

/** The functions that a worker serves. */
export interface StateServedByWorker {
  apply(state: TimedState): Promise<void>
  carryOut(command: Command<MachineCommandType>): Promise<void>
}

/** Gives a worker access to the state and the other processes. */
export interface WorkerState extends StateStore, Machine {
  /** Sets the clock to the time of a state, and returns the state. */
  timed(state: TimedState): DesiredState
}

/**
 * Makes the worker's side. Its functions reject with DisconnectedError when the primary has ended.
 * @param isShared whether several machines share the state
 */
export function createWorkerState(peer: Peer, isShared: boolean): WorkerState {
  const primary = remote<ServedByPrimary>(peer, 'state')
  let aheadMs = 0

  function timed({ state, nowMs }: TimedState): DesiredState {
    aheadMs = nowMs - performance.now()
    return state
  }

  return {
    isShared,
    nowMs: () => performance.now() + aheadMs,
    timed,
    read: async () => timed(await primary.read()),
    write: (next, file) => primary.write(next, file ?? null),
    missing: (state, withinMs) => primary.missing(state, withinMs),
    everywhere: (command) => primary.everywhere(command),
    applyToServer: (command) => primary.applyToServer(command),
  }
}

type Question = (worker: Remote<StateServedByWorker>) => Promise<void>

/** A worker. While it is loading, it applies states before it serves. */
type Member = Pick<WorkerProcess, 'number' | 'peer' | 'serving'>

interface StateHostOptions {
  readonly store: StateStore
  readonly log: ModuleLogger
  /** The trace switches of the primary. */
  readonly trace: TraceSwitches
  /** Called with a command that one worker has run, before it is sent to the others. */
  readonly onCommand: (command: Command<MachineCommandType>) => Promise<void>
  /** Runs a command that concerns the server as a whole. */
  readonly applyToServer: (command: Command<MachineCommandType>) => void
  /** Called with a worker that must be replaced. */
  readonly onDiverged: (member: Member) => void
  /** How long a worker may take to apply a state, in milliseconds; by default 10,000. */
  readonly patienceMs?: number
}

/** The time-out for a worker that is loading or making a change: the longest that a timer supports. */
const longestMs = 2 ** 31 - 1

/** Makes the primary's side. */
export function createStateHost(options: StateHostOptions) {
  const { store, log, trace, patienceMs = 10_000 } = options
  /** The outcome of the last state sent to each worker: undefined, or a line with the reason why it was not applied. */
  const members = new Map<Member, Promise<string | undefined>>()
  /** Workers that may be making a change. They apply other states after it, however long it takes. */
  const changing = new Set<Member>()

  /** Calls a worker. Rejects with its error, with DisconnectedError, or when it does not answer in time. */
  async function ask(member: Member, question: Question): Promise<void> {
    const withinMs = member.serving && !changing.has(member) ? patienceMs : longestMs
    if (await endsWithin(withinMs, question(remote(member.peer, 'state')))) return void changing.delete(member)
    throw new Error(`it did not answer within ${withinMs / 1000} s`)
  }

  /**
   * Replaces a worker. Returns the line about it; undefined when it has ended, since its successor starts with the
   * state.
   */
  function replaceFailed(member: Member, what: string, error: unknown): string | undefined {
    if (error instanceof DisconnectedError) return undefined
    const line = `process ${member.number}: ${(error as Error).message}`
    log.error(`${what} was not applied by ${line}`)
    options.onDiverged(member)
    return line
  }

  /** Calls a worker, and replaces it when that fails. Resolves as `replaceFailed` returns. */
  function askOrReplace(member: Member, what: string, question: Question): Promise<string | undefined> {
    return ask(member, question).then(() => undefined, (error: unknown) => replaceFailed(member, what, error))
  }

  /** @param except workers that have applied the state, or are being replaced */
  function sendAll(state: DesiredState, except: ReadonlySet<Member>): void {
    trace.apply(state.trace)
    const timed: TimedState = { state, nowMs: store.nowMs() }
    for (const member of members.keys()) {
      if (except.has(member)) continue
      members.set(member, askOrReplace(member, `change ${state.version}`, (worker) => worker.apply(timed)))
    }
  }

  /**
   * Applies a state of another machine in every worker. One worker goes first, so that a bad state cannot break all of
   * them: when it fails, this rejects, and the others keep the previous state.
   */
  async function apply(state: DesiredState): Promise<void> {
    const timed: TimedState = { state, nowMs: store.nowMs() }
    const asked = new Set<Member>()
    for (const member of [...members.keys()].filter(({ serving }) => serving)) {
      asked.add(member)
      try {
        await ask(member, (worker) => worker.apply(timed))
        break
      } catch (error) {
        if (error instanceof RemoteError) throw error
        replaceFailed(member, `change ${state.version}`, error)
      }
    }
    sendAll(state, asked)
    await Promise.all([...members].filter(([{ serving }]) => serving).map(([, sent]) => sent))
  }

  async function missing(state: DesiredState, withinMs: number): Promise<readonly string[]> {
    const ofMachine = [...members].filter(([{ serving }]) => serving).map(async ([{ number }, sent]) => {
      let line: string | undefined
      const isAnswered = await endsWithin(withinMs, sent.then((outcome) => (line = outcome)))
      return isAnswered ? line : `process ${number}: it did not answer within ${withinMs / 1000} s`
    })
    const lines = await Promise.all([...ofMachine, ...(await Promise.all([store.missing(state, withinMs)])).flat()])
    return lines.filter((line) => line !== undefined)
  }

  /**
   * Runs a command in every worker that serves, and in the primary. Resolves as `Machine.everywhere` does.
   * @param from the worker that has already run it
   */
  async function everywhere(command: Command<MachineCommandType>, from?: Member): Promise<readonly string[]> {
    await options.onCommand(command)
    const others = [...members.keys()].filter((member) => member !== from && member.serving)
    const carryOut: Question = (worker) => worker.carryOut(command)
    const lines = await Promise.all(others.map((member) => askOrReplace(member, command.type, carryOut)))
    return lines.filter((line) => line !== undefined)
  }

  return {
    /** Adds a worker until its channel closes. */
    join: (member: Member): void => {
      const { peer } = member
      members.set(member, Promise.resolve(undefined))
      void peer.closed.then(() => {
        members.delete(member)
        changing.delete(member)
      })
      serve<ServedByPrimary>(peer, 'state', {
        read: async () => {
          changing.add(member)
          return { state: await store.read(), nowMs: store.nowMs() }
        },
        write: async (next, file) => {
          const isWritten = await store.write(next, file ?? undefined)
          if (isWritten) {
            changing.delete(member)
            sendAll(next, new Set([member]))
          }
          return isWritten
        },
        missing,
        everywhere: (command) => everywhere(command, member),
        applyToServer: (command) => options.applyToServer(command),
      })
    },
    apply,
    everywhere,
  }
}
