/**
 * The settings `setup.session`, and everything that the sessions of a server share: the store, its sweeping,
 * `SVC_MwSession`.
 *
 * A reload keeps the store if its settings are unchanged. Otherwise it opens another store, without moving the
 * sessions.
 */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { OpenLog } from '../base/ports.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { isToken } from '../base/token.ts'
import { readSettings, SettingsError, settingsTable } from '../chain/settings.ts'
import type { BuiltInGroup, PreparedSettings, SettingsOf } from '../chain/settings.ts'
import type { Middleware } from '../chain/compose.ts'
import type { Feature } from '../http/features.ts'
import { runWithSession, sessionFeature } from './feature.ts'
import type { OpenReplies } from './open-replies.ts'
import type { SessionServices } from './session.ts'
import { addCounts, noCounts, type SessionStore, type StoreCounts, type StoreSettings } from './store.ts'

/** The options of `createSessionGroup`. */
export interface SessionGroupOptions {
  /** The absolute folder that `path` is relative to: the folder of `svc.json`. */
  readonly folder: string
  /** Whether an absolute path is public, as in `paths.public`. */
  readonly isPublic: (path: string) => boolean
  readonly log: OpenLog
  /** Opens a store on this machine. */
  readonly openStoreHere: (settings: StoreSettings, onProblem: (message: string) => void) => SessionStore
  /** Opens the store that all processes share, if there is one. */
  readonly openSharedStore?: ((onProblem: (message: string) => void) => SessionStore) | undefined
  /** The open streams, polls and WebSockets of sessions. */
  readonly openReplies: OpenReplies
}

/** The sessions of one server. */
export interface SessionGroup extends BuiltInGroup {
  readonly feature: Feature
  /** The counts of all stores since the start. */
  readonly counts: StoreCounts
  /** The sessions in the store; undefined where that is not known. */
  readonly stored: number | undefined
  /** The folder of the current store; undefined if it has no files. */
  readonly storeFolder: string | undefined
  /** Closes the store. Call it when no request is running. */
  close(): Promise<void>
}

const name = 'session'
/** The name in `access/cookie.ts`, which is not imported since that room is above this one. */
const adminCookieName = 'svc_admin'

/** The settings of the group: `setup.session`. */
export const sessionTable = settingsTable({
  cookie: {
    kind: 'string', default: 'SVCSID', check: checkCookie,
    meaning: 'The name of the session cookie.',
  },
  ttl_s: {
    kind: 'integer', min: 0, max: 31_536_000, default: 3600,
    meaning: 'Seconds after which an unused session expires. 0: a day, and its cookie ends with the browser session.',
  },
  sweep_every: {
    kind: 'integer', min: 1, max: 1_000_000, default: 60,
    meaning: 'Expired sessions are removed from the store after every this many saves.',
  },
  max: {
    kind: 'integer', min: 1, max: 10_000_000, default: 100_000,
    meaning: 'The maximum of sessions in the store `memory`. Beyond it, the least recently used session is dropped.',
  },
  store: {
    kind: 'choice', choices: ['auto', 'memory', 'file', 'data'], default: 'auto',
    meaning: 'Where sessions are stored: in `memory`, where they end with the process, in a `file` each, or in the '
      + 'database of `paths.data` (`data`; Node 22.13 or later). `auto`: in the shared engine if `shared.url` is set, '
      + 'else in `memory`.',
  },
  path: {
    kind: 'string', default: '',
    check: (text) => (/[\u0000-\u001f\u007f]/.test(text) ? 'must be a path without control characters' : undefined),
    meaning: 'The folder of the store `file`, used only by this server; relative to the folder of `svc.json`.',
  },
})

type Settings = SettingsOf<typeof sessionTable>

interface InUse {
  readonly settings: Settings
  readonly store: SessionStore
}

/** Makes the group, with the default settings until the first `commit`. */
export function createSessionGroup(options: SessionGroupOptions): SessionGroup {
  const { folder, isPublic, openStoreHere } = options
  const log = options.log('error')
  const warn = (message: string): void => log.warn(message)
  const refusals = new RateLimited(warn, 1000)
  const defaults = readSettings(name, sessionTable, undefined).settings
  let inUse: InUse = { settings: defaults, store: openStore(defaults) }
  let closedCounts = noCounts
  let saves = 0

  const services: SessionServices = {
    get cookie() {
      return inUse.settings.cookie
    },
    get ttlS() {
      return inUse.settings.ttl_s
    },
    get store() {
      return inUse.store
    },
    saved: () => {
      saves += 1
      if (saves % inUse.settings.sweep_every === 0) attempt('sweep the sessions', () => inUse.store.sweep())
    },
    openReplies: options.openReplies,
  }

  /** Runs background work. Resolves when it is done; a failure is logged. */
  async function attempt(what: string, work: () => unknown): Promise<void> {
    try {
      await work()
    } catch (error) {
      log.error(`Cannot ${what}`, { thrown: error })
    }
  }

  function prepare(given: unknown): PreparedSettings {
    const { settings, warnings } = readSettings(name, sessionTable, given)
    checkPath(settings, folder, isPublic)
    const before = inUse
    const keeps = identityOf(settings) === identityOf(before.settings)
    const store = keeps ? before.store : openStore(settings)
    return {
      warnings: [...warnings, ...warningsOf(settings)],
      commit: () => {
        inUse = { settings, store }
        if (keeps) return
        closedCounts = addCounts(closedCounts, before.store.counts)
        void attempt('close the session store', () => before.store.close())
      },
      abandon: () => {
        if (!keeps) void attempt('close the session store', () => store.close())
      },
    }
  }

  function openStore(settings: Settings): SessionStore {
    const { openSharedStore } = options
    if (settings.store === 'auto' && openSharedStore !== undefined) {
      return openSharedStore((message) => refusals.say(message))
    }
    return openStoreHere(storeSettings(settings), warn)
  }

  function storeSettings({ store, max, path }: Settings): StoreSettings {
    if (store === 'data') return { store }
    return store === 'file' ? { store, folder: resolve(folder, path) } : { store: 'memory', max }
  }

  /** Returns the identity of a store: settings with the same text can keep the open store. */
  function identityOf(settings: Settings): string {
    const isShared = settings.store === 'auto' && options.openSharedStore !== undefined
    return isShared ? 'shared' : JSON.stringify(storeSettings(settings))
  }

  function warningsOf({ store, path }: Settings): string[] {
    const unused =
      store !== 'file' && path !== '' ? [`setup.session.path is not used: setup.session.store is "${store}"`] : []
    return store === 'auto' || options.openSharedStore === undefined ? unused : [...unused, notShared(store)]
  }

  return {
    name,
    table: sessionTable,
    middleware: new Map<string, Middleware>([['SVC_MwSession', runWithSession]]),
    prepare,
    feature: sessionFeature(services),
    get counts() {
      return addCounts(closedCounts, inUse.store.counts)
    },
    get stored() {
      return inUse.store.stored
    },
    get storeFolder() {
      const used = storeSettings(inUse.settings)
      return used.store === 'file' ? used.folder : undefined
    },
    close: () => attempt('close the session store', () => inUse.store.close()),
  }
}

function notShared(store: string): string {
  return `sessions are not shared, since setup.session.store is "${store}": "auto" shares them by shared.url`
}

function checkCookie(text: string): string | undefined {
  if (text === adminCookieName) return 'must be another name: this one belongs to the admin panel'
  return isToken(text) && text.length <= 256 ? undefined : 'must be a cookie name, a token of 1 to 256 characters'
}

function checkPath({ store, path }: Settings, folder: string, isPublic: (path: string) => boolean): void {
  if (store !== 'file') return
  if (path === '') throw new SettingsError(['setup.session.path must be a folder, since setup.session.store is "file"'])
  const problem = folderProblem(resolve(folder, path))
  if (problem !== undefined) throw new SettingsError([`setup.session.path must be a folder: ${problem}`])
  if (isPublic(resolve(folder, path))) {
    throw new SettingsError([`setup.session.path must not be in paths.public, which everybody may read: it is ${path}`])
  }
}

/** Why a path cannot be used as a folder; undefined if it can, or if it does not exist yet. */
function folderProblem(path: string): string | undefined {
  try {
    return statSync(path).isDirectory() ? undefined : `${path} is not a folder`
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException // `node:fs` throws Errors.
    return code === 'ENOENT' ? undefined : message
  }
}
