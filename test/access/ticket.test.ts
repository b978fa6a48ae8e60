import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AdminCredentials } from '../../lib/access/credentials.ts'
import { makeTicket, readTicket, ticketMs } from '../../lib/access/ticket.ts'

const nowMs = 1_700_000_000_000
const expiresAtMs = nowMs + ticketMs
const secondFactor = { secret: 'A'.repeat(32), recoveryCodes: [] }
const ann: AdminCredentials = { user: 'ann', password: 'hash', secret: 'secret', secondFactor }

test('is good for five minutes', () => {
  const ticket = makeTicket({ next: '/svc-index', expiresAtMs }, ann)
  const read = readTicket(ticket, ann, nowMs)
  assert.deepEqual([read?.next, read?.expiresAtMs], ['/svc-index', expiresAtMs])
  assert.notEqual(readTicket(ticket, ann, nowMs + 299_999), undefined)
  assert.equal(readTicket(ticket, ann, nowMs + 300_000), undefined)
  assert.match(ticket, /^[\w.-]+$/)
})

test('each has another id, and keeps any next', () => {
  const nexts = ['', '/é ?&"<>', '/a.b', 'x'.repeat(2000)]
  const tickets = nexts.map((next) => readTicket(makeTicket({ next, expiresAtMs }, ann), ann, nowMs))
  assert.deepEqual(tickets.map((ticket) => ticket?.next), nexts)
  assert.equal(readTicket(makeTicket({ next: 'x'.repeat(2001), expiresAtMs }, ann), ann, nowMs)?.next, '')
  assert.equal(new Set(tickets.map((ticket) => ticket?.id)).size, nexts.length)
})

test('is of one name, password, secret and second factor', () => {
  const ticket = makeTicket({ next: '', expiresAtMs }, ann)
  const { secondFactor: _, ...without } = ann
  for (const others of [
    { ...ann, user: 'bob' },
    { ...ann, password: 'other' },
    { ...ann, secret: 'other' },
    { ...ann, secondFactor: { ...secondFactor, secret: 'B'.repeat(32) } },
    without,
  ]) {
    assert.equal(readTicket(ticket, others, nowMs), undefined, JSON.stringify(others))
  }
  const fewer = { ...ann, secondFactor: { ...secondFactor, recoveryCodes: ['another'] } }
  assert.notEqual(readTicket(ticket, fewer, nowMs), undefined)
})

test('is no ticket with any other character', () => {
  const ticket = makeTicket({ next: '/a', expiresAtMs }, ann)
  for (let at = 0; at < ticket.length; at += 1) {
    const other = ticket[at] === 'a' ? 'b' : 'a'
    for (const altered of [ticket.slice(0, at) + ticket.slice(at + 1), ticket.slice(0, at) + other + ticket.slice(at + 1)]) {
      assert.equal(readTicket(altered, ann, nowMs), undefined, altered)
    }
  }
  for (const wrong of ['', '.', '..', 'x', ticket + ticket, ticket.toUpperCase(), `${ticket} `]) {
    assert.equal(readTicket(wrong, ann, nowMs), undefined, wrong)
  }
})
