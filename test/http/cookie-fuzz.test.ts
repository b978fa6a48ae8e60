import { test } from 'node:test'
import { checkCookieHeaders, checkCookieValues } from './cookie-fuzz-support.ts'

test('reads Cookie headers without throwing, and returns no cookie that was not sent', () => checkCookieHeaders(4_000))

test('reads back values as they were set', () => checkCookieValues(4_000))
