// The seeded checks of this folder with enough inputs to find rare cases; the fast tests take a sample.
import { test } from 'node:test'
import { checkJsonBodies } from './body-json-support.ts'
import { checkCookieHeaders, checkCookieValues } from './cookie-fuzz-support.ts'
import { checkSections } from '../core/header-section-support.ts'
import { checkDamagedForms } from './multipart-support.ts'

test('throws only HttpError on 1,500 damaged forms, and leaves no file', () => checkDamagedForms(1500))

test('reads 100,000 Cookie headers without throwing, and returns no cookie that was not sent', () => {
  checkCookieHeaders(100_000)
})

test('reads back 100,000 cookie values as they were set', () => checkCookieValues(100_000))

test('accepts and refuses exactly what JSON.parse does, for 20,000 texts', () => checkJsonBodies(20_000))

test('sends 300 header sections byte for byte as Node does', (t) => checkSections(t, 300))
