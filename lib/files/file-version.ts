/**
 * Whether a file has changed since it was last checked.
 *
 * Surprise: file system timestamps are coarse, some have steps of two seconds. A file that was changed twice within one
 * step may look unchanged, so a file with a recent `ctime` must be read again.
 */

/** The fields of `Stats` that change when a file changes. */
export interface FileVersion {
  readonly dev: number
  readonly ino: number
  readonly size: number
  readonly mtimeMs: number
  readonly ctimeMs: number
}

/** The longest step of timestamps that are whole seconds, in milliseconds. */
const coarseStepMs = 2000
/** The longest step of other timestamps, a kernel tick with room, in milliseconds. */
export const fineStepMs = 100

/**
 * Whether a file that looks unchanged can be trusted to be.
 * @param nowMs milliseconds since 1970
 */
export function isSettled({ ctimeMs }: Pick<FileVersion, 'ctimeMs'>, nowMs: number): boolean {
  return nowMs - ctimeMs > (ctimeMs % 1000 === 0 ? coarseStepMs : fineStepMs)
}

/** Whether the file is unchanged: it was not written to, truncated or replaced in between. */
export function isUnchanged(seen: FileVersion, now: FileVersion): boolean {
  return (
    seen.ctimeMs === now.ctimeMs &&
    seen.mtimeMs === now.mtimeMs &&
    seen.size === now.size &&
    seen.ino === now.ino &&
    seen.dev === now.dev
  )
}
