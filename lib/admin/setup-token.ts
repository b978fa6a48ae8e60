/**
 * The one-time token of the first setup: who can read the server's log may set it up, also from afar.
 *
 * Surprise: a request that came through a proxy which is not declared in `server.trusted_proxies` has the proxy's
 * address, often a loopback one. Its forwarding header gives it away, and then the token is asked for.
 */
import { randomBytes } from 'node:crypto'
import { createClientAddress } from '../http/client-address.ts'
import type { Context } from '../http/context.ts'
import { isLoopback, isPrivate } from '../http/ip-address.ts'
import { setupRequired } from './credentials.ts'
import { equalTexts } from './password.ts'
import type { AdminPort } from './port.ts'

export interface SetupToken {
  /** Whether a setup by this request needs the token. When it does, the log has it from then on. */
  requiredFor(ctx: Context): boolean
  /** Whether a text is the token. In constant time. */
  matches(text: string): boolean
  /** To be called at the start: writes the token to the log, once, when the panel is there, protected and not set up. */
  announce(): void
}

const forwardingFields = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-server',
  'x-real-ip',
]

/** Makes a token: 128 random bits. */
export function makeSetupToken(): string {
  return randomBytes(16).toString('hex')
}

/** Asks for the token of this server where a setup needs it. */
export function createSetupToken(port: Pick<AdminPort, 'config' | 'credentials' | 'setupToken' | 'log'>): SetupToken {
  const { config, setupToken: token } = port
  const mode = config['admin.setup_token']
  const proxies = createClientAddress(config['server.trusted_proxies'])
  let announced = false

  function isNear(ctx: Context): boolean {
    const forwarded = forwardingFields.some((name) => ctx.header(name) !== undefined)
    const peerIsTrusted = proxies.trusts(ctx.request.socket.remoteAddress ?? '')
    // A trusted proxy that names no client leaves its own address as the client's.
    if (forwarded && !(peerIsTrusted && ctx.header('x-forwarded-for') !== undefined)) return false
    return isLoopback(ctx.ip) || isPrivate(ctx.ip)
  }

  function write(): void {
    if (announced) return
    announced = true
    const who = mode === 'on' ? '' : ' from outside this machine and its private network'
    // A warning, so that no level or trace switch below it hides the token.
    port.log.warn(`the admin panel is not set up: open /svc-setup; a setup${who} asks for this token: ${token}`)
  }

  return {
    requiredFor(ctx) {
      const required = mode === 'on' || (mode === 'auto' && !isNear(ctx))
      if (required) write()
      return required
    },
    matches: (text) => equalTexts(text, token),
    announce() {
      if (mode === 'off' || !config['admin.enabled'] || config['app.env'] === 'dev') return
      if (setupRequired(port.credentials())) write()
    },
  }
}
