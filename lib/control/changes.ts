/**
 * Carries out the commands that change the running server (`commands.ts`).
 *
 * A persistent change is a change of the desired state. The process that gets the command first applies the latest
 * state, then applies the change atomically, and then writes the next state. If another process was faster, it starts
 * over from the state of that process. The response is sent when every live process has applied the change, or names
 * those that have not. Commands for this machine only (its logs, its view cache, a bench window, a certificate, a stop)
 * are calls to its processes and are not stored.
 */
import { isSameAdmin, judge } from '../access/credentials.ts'
import type { CredentialStore } from '../access/credential-store.ts'
import { mergedCodes, usedRecoveryCodes, withUsed } from '../access/used-codes.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'
import { reasonOf } from '../base/reason.ts'
import { HttpError, isHttpError } from '../http/errors.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Trace } from '../log/trace.ts'
import type { Application } from '../application/application.ts'
import {
  NotEverywhereError,
  type AddResult,
  type Command,
  type CommandTable,
  type CommandType,
  type Control,
  type MachineCommandType,
  type MachineHandlers,
} from './commands.ts'
import {
  nextState,
  withFilesRead,
  withReload,
  withRoute,
  withoutRoute,
  withSwitch,
  type DesiredState,
  type StateContent,
} from './desired-state.ts'
import { persistedFile, type RouteFileChange } from './persisted-routes.ts'
import type { Outcome, Reconciler } from './reconciler.ts'
import type { StateStore } from './state-store.ts'
import type { UsedCodesFile } from './used-codes-file.ts'

interface ChangesOptions {
  readonly store: StateStore
  readonly reconciler: Reconciler
  readonly application: Application<unknown>
  readonly credentials: CredentialStore
  readonly usedCodesFile: UsedCodesFile
  readonly trace: Trace
  /** The handlers of this process for the commands about this machine. */
  readonly handlers: MachineHandlers
  /** The other processes of this machine; undefined if there are none. */
  readonly machine: Machine | undefined
  /** The log of a module. */
  readonly log: (module: string) => ModuleLogger
}

/** The other processes of a machine, as seen from one process. */
export interface Machine {
  /** Runs a command in every other process. Resolves with a line for each that failed, with the reason. */
  everywhere(command: Command<MachineCommandType>): Promise<readonly string[]>
  /** Forwards a command about all processes together. Resolves when it has begun. */
  applyToServer(command: Command<MachineCommandType>): Promise<void>
}

/** The change that a command makes. */
interface Change<Answer> {
  /** Absent when there is nothing to change. */
  readonly content?: Partial<StateContent>
  readonly file?: RouteFileChange
  readonly answer: (outcome: Outcome) => Answer
}

/** The longest time for a process to apply a change, in milliseconds: a reload, and any other change. */
const reloadMs = 10_000
const applyMs = 5000

const isWhole = (type: CommandType): boolean => type === 'stop' || type === 'logs.reopen'

/** Carries out commands in one process. */
export class Changes implements Control {
  readonly #options: ChangesOptions

  constructor(options: ChangesOptions) {
    this.#options = options
  }

  async apply<T extends CommandType>(command: Command<T>): Promise<CommandTable[T]['answers']> {
    return (await this.#answer(command as Command)) as CommandTable[T]['answers'] // Each answers its own command.
  }

  #answer(command: Command): Promise<unknown> {
    switch (command.type) {
      case 'routes.add':
        return this.#change(command, (latest) => this.#add(latest, command as Command<'routes.add'>))
      case 'routes.delete':
        return this.#change(command, (latest) => this.#delete(latest, command as Command<'routes.delete'>))
      case 'routes.reload':
        return this.#change(command, (latest) => this.#reload(latest, command as Command<'routes.reload'>))
      case 'files.changed':
        return carryOut(this.#options.handlers, command as Command<'files.changed'>) // It commands the others itself.
      case 'trace.set':
        return this.#change(command, (latest) => this.#switch(latest, command as Command<'trace.set'>))
      case 'admin.setup':
        return this.#change(command, (latest, again) => this.#setUp(latest, command as Command<'admin.setup'>, again))
      case 'admin.code':
        return this.#change(command, (latest) => this.#useCode(latest, command as Command<'admin.code'>))
      case 'admin.secret':
        return this.#change(command, (latest) => this.#ensureSecret(latest))
      default:
        return this.#onMachine(command as Command<MachineCommandType>)
    }
  }

  /**
   * @param make makes the change from the latest state; `isAgain` is true after another process was faster
   */
  async #change<Answer>(
    { type }: Command,
    make: (latest: DesiredState, isAgain: boolean) => MaybePromise<Change<Answer>>,
  ): Promise<Answer> {
    const { reconciler, store } = this.#options
    const { answer, written } = await reconciler.inTurn(async (apply) => {
      for (let isAgain = false; ; isAgain = true) {
        const latest = await store.read()
        await apply(latest).catch((error: unknown) => {
          throw notCurrent(error)
        })
        const { content, file, answer } = await make(latest, isAgain)
        if (content === undefined) return { answer: answer({ added: new Map() }), written: undefined }
        const next = nextState(latest, content)
        const outcome = await apply(next)
        if (await this.#write(next, file, () => apply(latest), type)) return { answer: answer(outcome), written: next }
      }
    })
    // Each process reads the latest state before it accepts a code: a sign-in need not wait for the others.
    if (written !== undefined && type !== 'admin.code') {
      const missing = await store.missing(written, type === 'routes.reload' ? reloadMs : applyMs)
      if (missing.length > 0) throw new NotEverywhereError(type, missing)
    }
    return answer
  }

  /** Writes the next state; when that fails, restores the state before it. */
  async #write(
    next: DesiredState,
    file: RouteFileChange | undefined,
    restore: () => Promise<unknown>,
    type: CommandType,
  ): Promise<boolean> {
    const { store, log } = this.#options
    try {
      return await store.write(next, file)
    } catch (error) {
      await restore()
      if (isHttpError(error)) log('server').warn(`${type}: the change could not be shared and was undone`)
      throw error
    }
  }

  #add(latest: DesiredState, { record, persist }: Command<'routes.add'>): Change<AddResult> {
    const { application, store } = this.#options
    const checked = application.check(record, persist)
    const { name } = checked
    return {
      content: withRoute(latest, name, record, persist && store.isShared),
      ...(persist && { file: { keep: checked } }),
      answer: ({ added }) => added.get(name) ?? { name, warnings: [] },
    }
  }

  #delete(latest: DesiredState, { name }: Command<'routes.delete'>): Change<CommandTable['routes.delete']['answers']> {
    const { application, store } = this.#options
    const deleted = application.has(name)
    const answer = (): { deleted: boolean } => ({ deleted })
    if (!deleted && !store.isShared) return { answer }
    return { content: withoutRoute(latest, name), file: { forget: name }, answer }
  }

  #reload(
    latest: DesiredState,
    { keepsAdded = false }: Command<'routes.reload'>,
  ): Change<CommandTable['routes.reload']['answers']> {
    const { application, log } = this.#options
    const needsNames = keepsAdded || latest.routes.some(({ lasts }) => lasts)
    const inFiles = needsNames ? application.namesInFiles() : new Set<string>()
    return {
      content: keepsAdded
        ? withFilesRead(latest, inFiles, application.namesInFiles(persistedFile))
        : withReload(latest, inFiles),
      answer: ({ reload }) => {
        const result = reload as NonNullable<typeof reload> // The version of the reload is new.
        log('server').info(`routes reloaded: ${result.totalDeleted} removed, ${result.totalLoaded} loaded`)
        for (const warning of result.warnings) log('config').warn(warning)
        return result
      },
    }
  }

  #switch(
    latest: DesiredState,
    { module, enabled: on, ttlSeconds }: Command<'trace.set'>,
  ): Change<CommandTable['trace.set']['answers']> {
    const { trace, store } = this.#options
    trace.check(module)
    return { content: withSwitch(latest, { module, on, ttlSeconds }, store.nowMs()), answer: () => trace.state() }
  }

  async #setUp(
    { credentials: shared }: DesiredState,
    { user, password }: Command<'admin.setup'>,
    isAgain: boolean,
  ): Promise<Change<CommandTable['admin.setup']['answers']>> {
    const { credentials } = this.#options
    if (isAgain && shared !== undefined && judge(credentials.own, shared) === 'differ') credentials.adopt(shared)
    const done = isAgain ? shared === undefined : await credentials.setUp(user, password)
    return { ...(done && { content: { credentials: credentials.current } }), answer: () => ({ done }) }
  }

  /** A secret is shared only together with its user name and password. */
  async #ensureSecret({ credentials: shared }: DesiredState): Promise<Change<CommandTable['admin.secret']['answers']>> {
    const { credentials } = this.#options
    const secret = await credentials.ensureSecret()
    const { current } = credentials
    const isOther = shared !== undefined && !isSameAdmin(shared, current)
    const isShared = shared?.secret === current.secret
    return { ...(!isOther && !isShared && { content: { credentials: current } }), answer: () => secret }
  }

  /** The file has the codes that were used before this start, and those of an engine that has lost its state. */
  #useCode(
    { usedCodes = {} }: DesiredState,
    { code }: Command<'admin.code'>,
  ): Change<CommandTable['admin.code']['answers']> {
    const { credentials, usedCodesFile, log } = this.#options
    const { secret = '', recoveryCodes = [] } = credentials.current.secondFactor ?? {}
    const known = mergedCodes(usedCodes, usedCodesFile.read())
    const next = withUsed(known, secret, code)
    const used = usedRecoveryCodes(next ?? known, secret)
    const answer = (): CommandTable['admin.code']['answers'] => {
      if ('recoveryHash' in code && next !== undefined) {
        try {
          credentials.forgetRecoveryCodes(used)
        } catch (error) {
          log('config').warn(`a used recovery code stays in admin.recovery_codes: ${reasonOf(error)}`)
        }
      }
      const left = recoveryCodes.filter((hash) => !used.includes(hash)).length
      return { accepted: next !== undefined, left }
    }
    return { ...(next !== undefined && { content: { usedCodes: next } }), answer }
  }

  async #onMachine(command: Command<MachineCommandType>): Promise<unknown> {
    const { handlers, machine, log } = this.#options
    if (machine !== undefined && isWhole(command.type)) return machine.applyToServer(command)
    const answer: unknown = await carryOut(handlers, command)
    if (command.type === 'certificates.reload' && answer === true) log('server').info('certificates reloaded')
    const missing = (await machine?.everywhere(command)) ?? []
    if (missing.length > 0) throw new NotEverywhereError(command.type, missing)
    return answer
  }
}

/** Runs a command about this machine in this process. */
export async function carryOut(handlers: MachineHandlers, command: Command<MachineCommandType>): Promise<unknown> {
  const handler = handlers[command.type] as (command: Command) => unknown // It matches the command's type.
  return handler(command)
}

/** The error for a change when this process could not apply the latest state. */
function notCurrent(error: unknown): unknown {
  if (isHttpError(error)) return error
  const headers = { 'Retry-After': '1' }
  const reason = `this node is out of sync: ${reasonOf(error)}`
  return new HttpError(503, 'shared_away', reason, { headers, cause: error })
}
