/** Codes and tickets, as the app and the browser of an administrator have them. */
import assert from 'node:assert/strict'
import { codeOf } from '../../lib/access/totp.ts'

/** The code of a secret now, or some steps later. */
export function codeNow(secret: string, steps = 0): string {
  return codeOf(secret, Math.floor(Date.now() / 30_000) + steps)
}

/** The ticket in the page that asks for a code. */
export function ticketOf({ text }: { readonly text: string }): string {
  const ticket = /<input type="hidden" name="ticket" value="([^"]+)">/.exec(text)?.[1]
  return ticket ?? assert.fail(`no ticket: ${text}`)
}
