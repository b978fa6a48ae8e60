// The digest: a mail with the newest notices. A real application sends it; the demo writes it as a file.

import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { allNotices } from './notices.js'

const maxNotices = 20
const maxText = 200
const root = fileURLToPath(new URL('../..', import.meta.url))
const name = '.cached/mail/digest.eml'
const path = resolve(root, name)

/** Why no jobs run here, or undefined: the server leaves out those of `routes/jobs` where it cannot store them. */
export const whyNoJobs = isBuiltin('node:sqlite')
  ? undefined
  : `Jobs are kept in SQLite, which Node ${process.versions.node} does not have, so they are left out: run Node 22.13 or later.`

/** The job `board.digest`: writes the mail, and shows it on open pages. A job may run twice: this replaces the file. */
export default async ({ id, channel, log }) => {
  const draft = `${path}.${id}`
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeFile(draft, mailOf(allNotices().slice(0, maxNotices), new Date()), { mode: 0o600 })
  await rename(draft, path)
  log.info(`the digest is in ${path}`)
  await channel('digest').publish(await readDigest())
}

/** Returns the last digest: the name of its file, its text with line ends as in HTML, and its time; or undefined. */
export async function readDigest() {
  try {
    const [text, { mtime }] = await Promise.all([readFile(path, 'utf8'), stat(path)])
    return { file: name, text: text.replaceAll('\r\n', '\n'), written_at: mtime.toISOString() }
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
}

/** Returns a message by RFC 5322, which mail programs open. Nothing that users wrote is in its header. */
function mailOf(notices, now) {
  const head = [
    'From: Notice board <board@example.org>',
    'To: Everyone <everyone@example.org>',
    'Subject: The notices of today',
    `Date: ${now.toUTCString().replace('GMT', '+0000')}`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: 8bit',
  ]
  const lines = notices.map(({ author, text }) => `- ${author}: ${text.slice(0, maxText).replaceAll('\n', '\n  ')}`)
  const body = lines.length > 0 ? lines : ['There are no notices.']
  return [...head, '', ...body, ''].join('\n').replaceAll('\n', '\r\n')
}
