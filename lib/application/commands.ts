/**
 * What carries out the commands that change what a server serves, and what takes them up where another process has
 * carried them out. Those of the admin panel are its own.
 *
 * Surprise: what takes a command up logs nothing: the process that carried it out has said it for all.
 */
import { describeAll, type CommandHandlers, type ReloadResult } from '../control/commands.ts'
import type { CommandFollowers } from '../control/relay.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Inspection } from './application.ts'
import type { RunTimeRoutes } from './run-time-routes.ts'
import type { Views } from '../views/cache.ts'

type OwnCommand = 'routes.reload' | 'routes.add' | 'routes.delete' | 'cache.clear' | 'certificates.reload'

export interface ServerCommandsOptions {
  readonly application: { start(): Promise<Inspection>; reload(): Promise<ReloadResult> }
  readonly runTimeRoutes: Pick<RunTimeRoutes, 'add' | 'take' | 'remove' | 'drop'>
  readonly views: Pick<Views, 'clear'>
  /** Uses the certificate files as they are now. Returns false where there are none. Throws ConfigError. */
  readonly renewCertificates: () => boolean
  readonly log: (module: string) => ModuleLogger
}

export interface ServerCommands {
  readonly handlers: Pick<CommandHandlers, OwnCommand>
  readonly followers: Pick<CommandFollowers, OwnCommand>
  /**
   * Loads the application for the first time. Rejects as `Application.start` does.
   * @param announces whether to log what is wrong with it
   */
  load(announces: boolean): Promise<void>
  /** What was wrong with the application when it was last loaded. */
  readonly warnings: readonly string[]
}

/** Makes the commands of one server. */
export function createServerCommands(options: ServerCommandsOptions): ServerCommands {
  const { application, runTimeRoutes, views, renewCertificates, log } = options
  let warnings: readonly string[] = []

  async function reload(): Promise<ReloadResult> {
    const result = await application.reload()
    warnings = result.warnings
    return result
  }

  return {
    handlers: {
      'routes.reload': async () => {
        const result = await reload()
        log('server').info(`routes reloaded: ${result.totalDeleted} removed, ${result.totalLoaded} loaded`)
        for (const warning of result.warnings) log('config').warn(warning)
        return result
      },
      'routes.add': ({ record, persist }) => runTimeRoutes.add(record, persist),
      'routes.delete': ({ name }) => ({ deleted: runTimeRoutes.remove(name) }),
      'cache.clear': () => views.clear(),
      'certificates.reload': () => {
        if (renewCertificates()) log('server').info('certificates reloaded')
      },
    },
    followers: {
      'routes.reload': reload,
      'routes.add': ({ command, lasts }) => runTimeRoutes.take(command.record, lasts),
      'routes.delete': ({ command, inFiles = false }) => runTimeRoutes.drop(command.name, inFiles),
      'cache.clear': () => views.clear(),
      'certificates.reload': renewCertificates,
    },
    load: async (announces) => {
      const { problems, broken, incomplete, notes } = await application.start()
      const [errors, hints] = [describeAll([...problems, ...broken]), describeAll([...incomplete, ...notes])]
      warnings = [...errors, ...hints]
      if (!announces) return
      for (const problem of errors) log('config').error(problem)
      for (const problem of hints) log('config').warn(problem)
    },
    get warnings() {
      return warnings
    },
  }
}
