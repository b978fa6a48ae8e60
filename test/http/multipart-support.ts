// Shared by the tests of multipart forms: bodies split at random positions, and the seeded check of damaged ones.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { HttpError } from '../../lib/http/errors.ts'
import type { Form } from '../../lib/http/form.ts'
import { MultipartForm } from '../../lib/http/multipart-form.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { noMove } from '../support/form-file.ts'
import { assertNoLeftovers, multipart } from './body-support.ts'

/** Splits a buffer at random positions, with empty chunks among them. */
export function cut(bytes: Buffer, seeded: Seeded, longest: number): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = seeded.integer(longest + 1)
    chunks.push(bytes.subarray(at, at + length))
    at += length
  }
  return chunks
}

/** Reads damaged forms: each is read or refused with an HttpError, independent of the chunks, and leaves no file. */
export async function checkDamagedForms(rounds: number): Promise<void> {
  const folder = temporaryFolder()
  const seeded = new Seeded(29)
  const field = 'Content-Disposition: form-data; name="a"'
  const whole = multipart('b', [
    [field, 'value'],
    [`${field}; filename="x.txt"\r\nContent-Type: text/plain`, 'small'],
    [`${field}; filename="y.bin"`, Buffer.alloc(70_000, 'y\r\n--')],
    [field, 'last'],
  ])
  const marks = ['\r', '\n', '\r\n\r\n', '"', ';', ':', '\0', '\xff', '\\', '=']
  const tokens = [...marks, '--b', '--b--', '\r\n--b\r\n', 'filename="']
  let refused = 0
  for (let round = 0; round < rounds; round += 1) {
    let body = whole
    for (let change = 0; change <= seeded.integer(3); change += 1) {
      // Mostly near the framing, at either end: most of the bytes belong to the large file.
      const near = seeded.integer(300)
      const at = seeded.integer(2) === 0 ? near : body.length - near
      const kept = at + (seeded.integer(2) === 0 ? 0 : seeded.integer(30))
      body = Buffer.concat([body.subarray(0, at), Buffer.from(seeded.pick(tokens), 'latin1'), body.subarray(kept)])
    }
    if (seeded.integer(10) === 0) body = body.subarray(0, seeded.integer(body.length))
    const results: string[] = []
    for (const chunks of [[body], cut(body, seeded, 3000)]) {
      try {
        const form = await read('b', chunks, folder)
        results.push(JSON.stringify([[...form.entries()], form.files.map(({ filename, size }) => [filename, size])]))
      } catch (error) {
        assert.ok(error instanceof HttpError, String(error))
        assert.ok(error.status === 400 || error.status === 415)
        results.push('refused') // which of two mistakes is reported depends on which is seen first
        refused += 1
      }
    }
    assert.equal(results[0], results[1])
  }
  assertNoLeftovers(folder)
  assert.ok(refused > rounds / 3 && refused < 1.9 * rounds, `${refused} readings of ${2 * rounds} were refused`)
}

async function read(boundary: string, chunks: readonly Buffer[], folder: string): Promise<Form> {
  const upload = new MultipartForm(boundary, folder, noMove)
  try {
    for (const chunk of chunks) await upload.write(chunk)
    const form = upload.end()
    for (const file of form.files) contentOf(file)
    return form
  } finally {
    await upload.discard()
  }
}

/** Returns the content of an uploaded file, in memory or on disk. */
export function contentOf(file: Form['files'][number]): Buffer {
  return file.bytes ?? readFileSync(file.path ?? '')
}
