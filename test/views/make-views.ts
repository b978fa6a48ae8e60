import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Views, type ViewsOptions } from '../../lib/views/cache.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Files by their path relative to the root. */
export type Files = Readonly<Record<string, string>>

export interface MadeViews {
  readonly views: Views
  readonly root: string
  /** The messages passed to `onProblem`. */
  readonly problems: string[]
}

/** Writes files below a folder. */
export function writeFiles(root: string, files: Files): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text)
  }
}

/** Makes views of files in a temporary folder; the disk cache is off by default. */
export function makeViews(
  files: Files,
  options: Partial<ViewsOptions> = {},
): MadeViews {
  const root = options.root ?? temporaryFolder()
  writeFiles(root, files)
  const problems: string[] = []
  const views = new Views({
    root,
    cacheFolder: join(root, '.cached'),
    ram: true,
    disk: false,
    readable: false,
    version: '1.0.0',
    onProblem: (message) => problems.push(message),
    ...options,
  })
  return { views, root, problems }
}

/** Runs as an unprivileged user: root ignores file modes. */
export function asOrdinaryUser(run: () => void): void {
  const user = process.geteuid?.()
  if (user === 0) process.seteuid?.(65534)
  try {
    run()
  } finally {
    if (user === 0) process.seteuid?.(0)
  }
}
