/** Installations to hash: folders with a few files in the places of the server's. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../../lib/base/version.ts'
import { readCode } from '../../lib/proof/code-digest.ts'
import { makeManifest } from '../../lib/proof/manifest.ts'
import { writeFiles } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** The files of an installation: of all tiers, beside the rooms, and deeper. */
export const installed: Readonly<Record<string, string>> = {
  'bin/svc.js': 'start()\n',
  'lib/app.ts': 'export const app = 1\n',
  'lib/core/server.ts': 'export const server = 1\n',
  'lib/core/pool.ts': 'export const pool = 1\n',
  'lib/http/body.ts': '',
  'lib/panel/pages/index.html': '<p>ä</p>\n',
  'lib/jobs/cron.ts': 'export const cron = 1\n',
  'lib/jobs/jobs.ts': 'export const jobs = 1\n',
}

/** Makes an installation. Returns its folder. */
export function install(files: Readonly<Record<string, string>> = installed): string {
  const folder = temporaryFolder()
  writeFiles(folder, files)
  return folder
}

/** Writes the manifest of an installation beside it. Returns its path. */
export function writeManifest(folder: string, ofVersion = version): string {
  const file = join(folder, 'manifest.json')
  writeFileSync(file, makeManifest(ofVersion, readCode(folder, 'lib')))
  return file
}
