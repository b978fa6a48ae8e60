// An application with files that must not be served, and ways out of the folder that it serves.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { Connection, requestText } from '../support/connection.ts'
import type { TestApplication } from '../support/application.ts'
import { serve } from '../support/serve.ts'

/** The content of a file beside every served folder, and of hidden files. */
export const treasure = 'the treasure'

/** Ways to write `../`, and its parts. */
const up: readonly (readonly [what: string, text: string])[] = [
  ['as it is', '../'],
  ['dots percent-encoded', '%2e%2e/'],
  ['one dot percent-encoded', '.%2e/'],
  ['in upper case', '%2E%2E/'],
  ['the slash percent-encoded', '..%2f'],
  ['all percent-encoded', '%2e%2e%2f'],
  ['double percent-encoded', '%252e%252e%252f'],
  ['three times percent-encoded', '%25252e%25252e%25252f'],
  ['overlong UTF-8 of two bytes', '%c0%ae%c0%ae%c0%af'],
  ['overlong UTF-8 of three bytes', '%e0%80%ae%e0%80%ae/'],
  ['overlong UTF-8 of four bytes', '%f0%80%80%ae%f0%80%80%ae/'],
  ['as bytes of UTF-16', '%ff%fe.%00.%00/'],
  ['with %u', '%u002e%u002e%u2215'],
  ['with a backslash', '..\\'],
  ['with a percent-encoded backslash', '..%5c'],
  ['with a double percent-encoded backslash', '..%255c'],
  ['with a NUL behind', '..%00/'],
  ['with a NUL before', '%00../'],
  ['with a space behind', '..%20/'],
  ['with a space before', '%20../'],
  ['with a dot more', '.../'],
  ['with two dots more', '..../'],
  ['doubled, so that one is left when one is taken out', '....//'],
  ['with a semicolon', '..;/'],
  ['with a fullwidth stop', '%ef%bc%8e%ef%bc%8e/'],
  ['with a one dot leader', '%e2%80%a4%e2%80%a4/'],
  ['with a division slash', '..%e2%88%95'],
  ['with a fullwidth solidus', '..%ef%bc%8f'],
  ['with a tab', '..%09/'],
  ['with a line end', '..%0d%0a/'],
  ['with a question mark', '..%3f/'],
  ['with a colon and a stream', '..::$DATA/'],
  ['after an empty segment', '/../'],
  ['after a dot', './../'],
  ['after a folder that is there', 'folder/../../'],
  ['after a folder that is not there', 'none/../../'],
]

export async function start(t: TestContext): Promise<TestApplication> {
  const rest = '(ctx) => ({ rest: ctx.params.path })'
  const application = await serve(
    t,
    { '/rest/*path': rest, '/view': '(ctx) => ctx.view(ctx.query.get("file") ?? "")' },
    { 'paths.public': 'public' },
    {
      'secret.txt': treasure,
      'secret.html': treasure,
      'public-other/secret.txt': treasure,
      'public/plain.txt': 'plain',
      'public/folder/plain.txt': 'plain',
      'public/.hidden/secret.txt': treasure,
      'public/.secret.txt': treasure,
      'public/folder/.secret.txt': treasure,
    },
  )
  return application
}

/** Sends a request target unchanged. */
export async function ask(t: TestContext, port: number, target: string, fields: readonly string[] = []): Promise<string> {
  const client = new Connection(t, port)
  await client.send(Buffer.from(requestText(`GET ${target}`, [...fields, 'Connection: close']), 'latin1'))
  return client.closed()
}

/** The parts of a path that are left upwards. */
const befores = ['/', '/folder/', '/folder', '//', 'http://h/']
const ends = ['secret.txt', 'public-other/secret.txt', 'svc.json', 'etc/passwd']

/**
 * Tries every way to go up out of the folder.
 * @param endsPerWay with how many of the four files each way is tried before each beginning; all are tried in any case
 */
export async function checkUpwards(t: TestContext, endsPerWay: number): Promise<void> {
  const { port } = await start(t)
  let turn = 0
  for (const [what, text] of up) {
    for (const depth of [1, 2, 3, 8]) {
      for (const before of befores) {
        turn += 1
        for (let at = 0; at < endsPerWay; at += 1) {
          const target = before + text.repeat(depth) + String(ends[(turn + at) % ends.length])
          const answer = await ask(t, port, target)
          assert.match(answer, /^HTTP\/1\.1 (400|404) /, `${what}: ${target}`)
          assert.ok(!answer.includes(treasure) && !answer.includes('root:'), `${what}: ${target}`)
        }
      }
      if (depth > 1 && what !== 'as it is') break
    }
  }
}
