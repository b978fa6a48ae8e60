import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { CredentialStore } from '../../lib/access/credential-store.ts'
import { ApplicationParts } from '../../lib/composition/application-parts.ts'
import { Changes, type Machine } from '../../lib/control/changes.ts'
import type { MachineHandlers } from '../../lib/control/commands.ts'
import { Reconciler } from '../../lib/control/reconciler.ts'
import { LocalStateStore, type StateStore } from '../../lib/control/state-store.ts'
import { UsedCodesFile } from '../../lib/control/used-codes-file.ts'
import { TraceSwitches } from '../../lib/control/trace-switches.ts'
import { parseConfig } from '../../lib/config/load.ts'
import type { ModuleLogger } from '../../lib/log/logger.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { Trace } from '../../lib/log/trace.ts'
import { writeFiles, type Files } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

export interface MadeChangesOptions {
  /** Makes the store; a local one by default. */
  readonly store?: (local: LocalStateStore) => StateStore
  readonly machine?: Machine
  readonly handlers?: Partial<MachineHandlers>
}

/** The control of one process over a started application, without a server. */
export async function makeChanges(t: Pick<TestContext, 'after'>, files: Files, options: MadeChangesOptions = {}) {
  const folder = temporaryFolder()
  writeFiles(folder, files)
  const loaded = parseConfig({}, folder)
  const { application, registry } = new ApplicationParts(loaded, 'a key', () => silentLogger)
  const lines: string[] = []
  const log = (module: string): ModuleLogger => {
    const at = (level: string) => (message: string) => void lines.push(`${level} ${module} ${message}`)
    return Object.assign(at('info'), silentLogger, { info: at('info'), warn: at('warn'), error: at('error') })
  }
  const usedCodesFile = new UsedCodesFile(join(folder, 'cache'), (message) => void lines.push(`WARN ${message}`))
  const local = new LocalStateStore(join(folder, 'routes'), usedCodesFile)
  const store = options.store?.(local) ?? local
  const trace = new Trace()
  const credentials = new CredentialStore({ config: loaded.config, writer: undefined, appKey: 'a key' })
  const switches = new TraceSwitches({ trace, nowMs: () => store.nowMs(), onReturn: () => {} })
  const reconciler = new Reconciler({ application, trace: switches, credentials })
  const handlers = options.handlers as MachineHandlers // A test passes the handlers of its commands.
  const control = new Changes({ store, reconciler, application, credentials, usedCodesFile, trace, handlers, machine: options.machine, log })
  t.after(() => application.stop())
  t.after(() => switches.close())
  await reconciler.start(await store.read())
  const kept = join(folder, 'routes', 'admin.json')
  return {
    control,
    reconciler,
    credentials,
    local,
    lines,
    folder,
    /** The application's routes, in order. */
    names: () => registry.list().map(({ record }) => record.name),
    find: (path: string) => registry.find('GET', path)?.route.record.name,
    /** The content of `admin.json`; undefined if it does not exist. */
    kept: () => (existsSync(kept) ? (JSON.parse(readFileSync(kept, 'utf8')) as unknown) : undefined),
    write: (more: Files) => writeFiles(folder, more),
  }
}
