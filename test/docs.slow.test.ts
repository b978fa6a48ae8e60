import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join, posix } from 'node:path'
import { describe, it, test, type TestContext } from 'node:test'
import { createApp } from '../lib/app.ts'
import { initApplication } from '../lib/cli/init.ts'
import { loadConfig, type LoadedConfig } from '../lib/config/load.ts'
import { csrfReasons } from '../lib/csrf/reason.ts'
import { errorCodes } from '../lib/http/errors.ts'
import { startApplication, writeFiles, type Files, type TestApplication } from './support/application.ts'
import { curl, runCurlLines } from './support/curl.ts'
import { renderErrors, statusesOfConnection, statusesOfReplies, usedCodes } from './support/errors-page.ts'
import { headingIds, links, readPage, readPages, root, shownFiles, tableBelow } from './support/markdown.ts'
import { exchange, parseAnswer } from './support/raw.ts'
import { request } from './support/request.ts'
import { readSources, roomOf } from './support/sources.ts'
import { temporaryFolder } from './support/temporary-folder.ts'
import { until } from './support/until.ts'

describe('docs/errors.md', () => {
  it('is right about what is answered on the connection', async (t) => {
    const { port, lines } = await startApplication(t, {}, { 'server.header_timeout_s': 1 })
    const late = exchange(port, 'GET / HTTP/1.1\r\nHost: a\r\n')
    const large = await exchange(port, `GET / HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(17_000)}\r\n\r\n`)
    const answers = [parseAnswer(await late), parseAnswer(large)]
    assert.deepEqual(answers.map(({ status }) => status), Object.values(statusesOfConnection))
    for (const { headers, body } of answers) {
      assert.match(headers['content-type'] ?? '', /^text\/html/)
      assert.match(body, /^<!doctype html>/)
    }
    assert.deepEqual(lines('access.log'), [])
  })
})
