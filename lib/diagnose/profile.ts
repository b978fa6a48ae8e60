/**
 * Profiles of this process: the functions that its time goes to, and those that allocated the memory in use. V8 samples
 * both while requests are served; the commands are those of the Chrome DevTools Protocol, domains Profiler and
 * HeapProfiler.
 *
 * Surprise: the session is in the thread that it profiles. A profile ends at the first turn of the event loop after its
 * time: with a loop that blocks the thread, later than requested.
 */
import { Session } from 'node:inspector/promises'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { pathOf } from './blocked-stack.ts'
import { realPathOf, relativeTo } from '../files/paths.ts'

/** `cpu`: the time by call stack. `heap`: the memory allocated meanwhile and still in use, by call stack. */
export type ProfileKind = 'cpu' | 'heap'

/** Takes profiles of this process, one at a time. */
export interface Profiler {
  /** Why this process cannot be profiled; undefined if it can. */
  readonly problem: string | undefined
  /** When the profile that is being taken should end, in milliseconds since 1970; undefined while there is none. */
  readonly endsAt: number | undefined
  /**
   * Returns a profile as JSON text, for DevTools: of kind `cpu` the content of a `.cpuprofile` file, else of a
   * `.heapprofile`. A signal ends the profile early.
   * @throws Error while another is being taken, or with the reason of V8
   */
  take(kind: ProfileKind, seconds: number, ...signals: AbortSignal[]): Promise<string>
}

/** A function in a profile; an empty `url` is V8 itself. */
interface CallFrame {
  url: string
}

/** The nodes of a `cpu` profile are a list, those of a `heap` profile a tree. */
type Profile = { readonly nodes: readonly ProfileNode[] } | { readonly head: ProfileNode }

interface ProfileNode {
  readonly callFrame: CallFrame
  readonly children?: readonly unknown[] | undefined
}

const lib = fileURLToPath(new URL('..', import.meta.url))

/** @param folder of the application: the places of its functions are shown relative to it */
export function createProfiler(folder: string): Profiler {
  const application = realPathOf(folder) // Node imports modules from their real paths.
  let endsAt: number | undefined
  return {
    get problem() {
      return process.permission?.has('inspector') === false
        ? 'Node\'s permission model denies profiles: they need --allow-inspector, on Node 24 and later'
        : undefined
    },
    get endsAt() {
      return endsAt
    },
    async take(kind, seconds, ...signals) {
      if (endsAt !== undefined) throw new Error('A profile is being taken')
      endsAt = Date.now() + seconds * 1000
      try {
        const profile = await sample(kind, seconds * 1000, AbortSignal.any(signals))
        return JSON.stringify(withPlaces(profile, application))
      } finally {
        endsAt = undefined
      }
    },
  }
}

async function sample(kind: ProfileKind, ms: number, signal: AbortSignal): Promise<Profile> {
  const session = new Session()
  session.connect()
  try {
    if (kind === 'cpu') {
      await session.post('Profiler.enable')
      await session.post('Profiler.start')
    } else await session.post('HeapProfiler.startSampling')
    await delay(ms, undefined, { signal }).catch(() => {}) // A signal ends the profile.
    if (kind === 'cpu') return (await session.post('Profiler.stop')).profile
    return (await session.post('HeapProfiler.stopSampling')).profile
  } finally {
    session.disconnect() // Frees the samples.
  }
}

/** Replaces the URLs of a profile by {@link placeOf}. */
function withPlaces(profile: Profile, application: string): Profile {
  const rest: ProfileNode[] = 'nodes' in profile ? [...profile.nodes] : [profile.head]
  for (let node = rest.pop(); node !== undefined; node = rest.pop()) {
    node.callFrame.url = placeOf(node.callFrame.url, application)
    // In a list, children are numbers.
    for (const child of node.children ?? []) if (typeof child === 'object') rest.push(child as ProfileNode)
  }
  return profile
}

/**
 * Returns the file of a function: `svc:lib/...` for the server, relative to the application if it is in its folder,
 * without the query of a reloaded module. What is no file is unchanged, such as `node:net`.
 */
function placeOf(url: string, application: string): string {
  const [plain = ''] = url.split('?', 1)
  const file = plain.startsWith('file:') ? pathOf(plain) : plain // The URL of a CommonJS module is its path.
  if (!file.startsWith('/')) return url
  if (file.startsWith(lib)) return `svc:${basename(lib)}/${file.slice(lib.length)}`
  return relativeTo(application, file) ?? file
}
