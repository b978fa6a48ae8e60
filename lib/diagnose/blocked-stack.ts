/**
 * Finds out what the main thread is executing, from another thread, with Node's inspector: it interrupts the running
 * JavaScript, as the pause button of a debugger does, reads the stack, and lets it continue.
 *
 * Surprise: native code cannot be interrupted. The session is disconnected when the time is up; otherwise it would
 * pause the main thread as soon as that code returns.
 */
import { Session, type Debugger, type InspectorNotification } from 'node:inspector'
import { fileURLToPath } from 'node:url'
import { reasonOf } from '../base/reason.ts'

/** How long the main thread may take to answer, and then to send its stack, which may be deep, in milliseconds. */
const answerMs = 2000
const stackMs = 10_000
const maxFrames = 50

/** The stack of the main thread: a line for each frame, as errors have them; `undefined` in native code. */
type Stack = readonly string[] | undefined

/**
 * Reads the stack of the main thread. Call it in another thread.
 * Rejects where the inspector is not available: under the permission model without `--allow-inspector`.
 */
export async function stackOfMainThread(): Promise<Stack> {
  const session = new Session()
  session.connectToMainThread()
  const urls = new Map<string, string>()
  session.on('Debugger.scriptParsed', ({ params }: InspectorNotification<Debugger.ScriptParsedEventDataType>) => {
    urls.set(params.scriptId, params.url)
  })
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<Stack>((resolve, reject) => {
      timer = setTimeout(() => resolve(undefined), answerMs)
      const answered = (error: Error | null): void => {
        if (error !== null) return reject(new Error(`the inspector answered: ${reasonOf(error)}`))
        clearTimeout(timer)
        timer = setTimeout(() => resolve(undefined), stackMs)
      }
      session.on('Debugger.paused', ({ params }: InspectorNotification<Debugger.PausedEventDataType>) => {
        resolve(params.callFrames.slice(0, maxFrames).map((frame) => lineOf(frame, urls)))
      })
      session.post('Debugger.enable', answered)
      session.post('Debugger.pause', answered)
    })
  } finally {
    clearTimeout(timer)
    session.disconnect() // The main thread continues.
  }
}

function lineOf({ functionName, location }: Debugger.CallFrame, urls: ReadonlyMap<string, string>): string {
  const url = urls.get(location.scriptId) ?? ''
  const file = url.startsWith('file:') ? pathOf(url) : url
  const at = `${file}:${location.lineNumber + 1}:${(location.columnNumber ?? 0) + 1}`
  return functionName === '' ? `    at ${at}` : `    at ${functionName} (${at})`
}

/** Returns the path of a file URL. A comment `sourceURL` may be no valid URL: it is returned unchanged. */
export function pathOf(url: string): string {
  try {
    return fileURLToPath(url)
  } catch {
    return url
  }
}
