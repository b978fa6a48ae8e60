// A recording behind a session, sent by `ctx.file`: Chromium plays it, and seeks by ranges.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApplication } from '../support/application.ts'
import { openPage } from '../support/browser.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'

const seconds = 300
const rate = 48_000
const megabytes = (seconds * rate) / 1_000_000

/** A recording of silence: one channel of 8 bits. */
function wave(): Buffer {
  const header = Buffer.alloc(44)
  const size = seconds * rate
  header.write('RIFF', 0)
  header.writeUInt32LE(36 + size, 4)
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(rate, 24)
  header.writeUInt32LE(rate, 28)
  header.writeUInt16LE(1, 32)
  header.writeUInt16LE(8, 34)
  header.write('data', 36)
  header.writeUInt32LE(size, 40)
  return Buffer.concat([header, Buffer.alloc(size, 128)])
}

const routes = [
  ['in', '/in', 'SVC_MwSession'],
  ['page', '/page', 'SVC_MwSession'],
  ['recording', '/recordings/:name', 'SVC_MwSession, SVC_MwIsAuth'],
] as const

test('a recording behind a sign-in plays and seeks by ranges', async (t) => {
  const page = await openPage(t)
  const { url, lines } = await startApplication(t, {
    'routes/r.json': routes.map(([name, path, middleware]) => ({ name, url: path, method: 'GET', scope: '', middleware, action: `a.mjs@${name === 'in' ? 'enter' : name}` })),
    'a.mjs': `
      export const enter = (ctx) => { ctx.signIn('ann'); return ctx.redirect('/page') }
      export const page = () => '<!doctype html><video src="/recordings/long.wav" preload="metadata" muted></video>'
      export const recording = ({ params, file }) => file(params.name, { in: 'recordings' })`,
    'recordings/long.wav': wave(),
  }, { 'access_log.format': 'common' })
  assert.equal((await request(`${url}/recordings/long.wav`)).status, 302)
  await page.open(`${url}/in`)
  const video = 'document.querySelector("video")'
  await until(async () => (await page.evaluate(`${video}.readyState`)) !== 0)
  assert.equal(await page.evaluate(`${video}.duration`), seconds)
  await page.evaluate(`${video}.play()`)
  await until(async () => Number(await page.evaluate(`${video}.currentTime`)) > 0)
  await page.evaluate(`${video}.currentTime = 270`)
  await until(async () => Number(await page.evaluate(`${video}.currentTime`)) > 270)
  await page.open('about:blank')
  const sent = lines('access.log').filter((line) => line.includes('/recordings/long.wav') && !line.includes(' 302 '))
  assert.ok(sent.some((line) => line.includes('" 206 ')), sent.join('\n'))
  const bytes = sent.map((line) => Number(line.split(' ').at(-1))).reduce((sum, count) => sum + count, 0)
  t.diagnostic(`${(bytes / 1_000_000).toFixed(1)} of ${megabytes} MB were sent, in ${sent.length} responses`)
  assert.deepEqual(page.errors.filter((error) => !error.includes('favicon')), [])
})
