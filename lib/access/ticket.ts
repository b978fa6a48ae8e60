/**
 * Tickets: the page that asks for a code has one in a hidden field. It proves that its client has sent the name and the
 * password, for five minutes. A ticket is good for one attempt, and the page after a wrong code has another one that
 * ends at the same time.
 *
 * Its signature covers the name, the hash of the password and the secret of the codes, so that a ticket ends when one
 * of them changes. The secret of the codes is a part of the key: without hardening, `admin.secret` may be derived from
 * the password, and somebody who knows that could otherwise find it by trying, with a ticket as the measure.
 */
import { randomBytes } from 'node:crypto'
import { createSigner, deriveKey, splitSigned } from '../tokens/signature.ts'
import type { AdminCredentials } from './credentials.ts'

/** The content of a ticket. */
export interface Ticket {
  /** Where the login redirects to; '' for the usual page. */
  readonly next: string
  /** Milliseconds since 1970, whole seconds. */
  readonly expiresAtMs: number
  /** Differs for each ticket. */
  readonly id: string
}

/** How long a ticket is good, in milliseconds. */
export const ticketMs = 300_000

const textPattern = /^(\d{1,12})_([A-Za-z0-9_-]{16})_([A-Za-z0-9_-]*)$/
/** A longer `next` is dropped, so that the ticket stays small. */
const maxNextLength = 2000
const idBytes = 12

/** Makes a ticket. */
export function makeTicket({ next, expiresAtMs }: Omit<Ticket, 'id'>, credentials: AdminCredentials): string {
  const id = randomBytes(idBytes).toString('base64url')
  const kept = next.length > maxNextLength ? '' : next
  const text = `${Math.floor(expiresAtMs / 1000)}_${id}_${Buffer.from(kept).toString('base64url')}`
  return `${text}.${signerOf(credentials).sign(signed(text, credentials))}`
}

/**
 * Reads a ticket.
 * @param nowMs milliseconds since 1970
 * @returns undefined if it is forged, damaged, too old, or of other credentials
 */
export function readTicket(ticket: string, credentials: AdminCredentials, nowMs: number): Ticket | undefined {
  const { text = '', signature = '' } = splitSigned(ticket) ?? {}
  const [, seconds, id, next] = textPattern.exec(text) ?? []
  if (seconds === undefined || id === undefined || next === undefined) return undefined
  if (!signerOf(credentials).verify(signed(text, credentials), signature)) return undefined
  const expiresAtMs = Number(seconds) * 1000
  return nowMs >= expiresAtMs ? undefined : { next: Buffer.from(next, 'base64url').toString(), expiresAtMs, id }
}

function signerOf({ secret, secondFactor }: AdminCredentials): ReturnType<typeof createSigner> {
  return createSigner([`${secret}|${secondFactor?.secret ?? ''}`], (key) => deriveKey(key, 'admin.ticket'))
}

function signed(text: string, { user, password, secondFactor }: AdminCredentials): string {
  return JSON.stringify([text, user, password, secondFactor?.secret])
}
