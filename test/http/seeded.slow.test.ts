// The seeded checks of this folder with as many inputs as find what is rare; the fast tests take a sample.
import { test } from 'node:test'
import { checkJsonBodies } from './body-json-support.ts'
import { checkCookieHeaders, checkCookieValues } from './cookie-fuzz-support.ts'
import { checkSections } from '../core/header-section-support.ts'
import { checkDamagedForms } from './multipart-support.ts'

test('throws nothing but HttpError on 1,500 damaged forms, and leaves no file', () => checkDamagedForms(1500))

test('reads 100,000 Cookie headers without a throw, and gives no cookie that was not sent', () => {
  checkCookieHeaders(100_000)
})

test('reads back 100,000 cookie values as they were set', () => checkCookieValues(100_000))

test('refuses what JSON.parse refuses, and takes what it takes, of 20,000 texts', () => checkJsonBodies(20_000))

test('sends 300 header sections byte for byte as Node does', (t) => checkSections(t, 300))
