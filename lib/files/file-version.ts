/**
 * Whether a file is as it was when it was last looked at.
 *
 * Surprise: file systems stamp times in steps, some of two seconds. A file that was changed twice within one step may
 * look unchanged, so what was read of a file with a young `ctime` must be read again.
 */

/** The fields of `Stats` that change when a file changes. */
export interface FileVersion {
  readonly dev: number
  readonly ino: number
  readonly size: number
  readonly mtimeMs: number
  readonly ctimeMs: number
}

/** Milliseconds after its `ctime` from which on a file that looks unchanged is unchanged. */
export const settledMs = 2000

/** Whether the file is the same and unchanged: it was not written to, truncated or replaced in between. */
export function isUnchanged(seen: FileVersion, now: FileVersion): boolean {
  return (
    seen.ctimeMs === now.ctimeMs &&
    seen.mtimeMs === now.mtimeMs &&
    seen.size === now.size &&
    seen.ino === now.ino &&
    seen.dev === now.dev
  )
}
