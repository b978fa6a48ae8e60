/** The parts of a server that hold the desired state and apply it. */
import { resolve } from 'node:path'
import { CredentialStore } from '../access/credential-store.ts'
import type { Application } from '../application/application.ts'
import type { Worker } from '../cluster/joining.ts'
import { createCredentialWriter } from '../config/credential-writer.ts'
import type { LoadedConfig } from '../config/load.ts'
import { Reconciler } from '../control/reconciler.ts'
import { LocalStateStore, type StateStore } from '../control/state-store.ts'
import { TraceSwitches } from '../control/trace-switches.ts'
import type { UsedCodesFile } from '../control/used-codes-file.ts'
import type { Logs } from '../log/logs.ts'
import type { Trace } from '../log/trace.ts'
import type { Life } from './life.ts'

interface StateOptions {
  readonly loaded: LoadedConfig
  /** The file in which setup saves the credentials; undefined: they are not saved. */
  readonly configFile: string | undefined
  readonly appKey: string
  readonly logs: Logs
  readonly life: Life
  readonly application: Application<unknown>
  /** Set in one of several processes, whose primary holds the state. */
  readonly worker: Worker | undefined
  /** Holds the state where servers share an engine. */
  readonly node: StateStore | undefined
  readonly usedCodesFile: UsedCodesFile
}

/** The parts. */
export interface StateParts {
  readonly store: StateStore
  readonly trace: Trace
  readonly credentials: CredentialStore
  readonly reconciler: Reconciler
  readonly usedCodesFile: UsedCodesFile
}

/** Creates the parts. Reads nothing yet. */
export function createStateParts(options: StateOptions): StateParts {
  const { loaded, configFile, appKey, logs, life, application, worker, node, usedCodesFile } = options
  const { config } = loaded
  const { trace } = logs.general
  const routesFolder = resolve(loaded.folder, config['paths.routes'])
  const store = worker?.store ?? node ?? new LocalStateStore(routesFolder, usedCodesFile)
  const switches = new TraceSwitches({
    trace,
    nowMs: () => store.nowMs(),
    // With several processes, the primary logs it.
    onReturn: (module, on) => {
      if (worker === undefined) {
        logs.module('server').info(`trace of ${module} reverted to ${on ? 'on' : 'off'}`)
      }
    },
  })
  life.atEnd(() => switches.close())
  const onWritten = (keys: readonly string[], file: string): void =>
    logs.module('config').info(`wrote ${keys.join(', ')} into ${file}`)
  const writer = configFile === undefined ? undefined : createCredentialWriter(configFile, config, onWritten)
  const credentials = new CredentialStore({ config, appKey, writer })
  credentials.share(worker?.state.credentials)
  const reconciler = new Reconciler({ application, trace: switches, credentials })
  return { store, trace, credentials, reconciler, usedCodesFile }
}
