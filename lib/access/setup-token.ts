/**
 * The one-time token of the first setup: whoever can read the server's log may set it up, from anywhere.
 *
 * A loopback address alone proves little: behind a proxy every client has one, and not every proxy sends a forwarding
 * field. A web page in a browser on this machine has one too when its name was rebound to 127.0.0.1. So without the
 * token the request must also name a loopback host, and a server that a service manager has started always asks for the
 * token (`systemd/managed.ts`).
 */
import { randomBytes } from 'node:crypto'
import type { CoreContext } from '../http/context.ts'
import { isLoopbackHost } from '../http/host.ts'
import { isLoopback } from '../http/ip-address.ts'
import { setupRequired } from './credentials.ts'
import { equalTexts } from './password.ts'
import type { AccessPort } from './port.ts'

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

/** Makes the check of the token. */
export function createSetupToken(port: Pick<AccessPort, 'config' | 'credentials' | 'setupToken' | 'log'>) {
  const { config, setupToken: token } = port
  const mode = config['admin.setup_token']
  let announced = false

  function isNear(ctx: CoreContext): boolean {
    if (forwardingFields.some((name) => ctx.header(name) !== undefined)) return false
    return isLoopback(ctx.ip) && isLoopbackHost(ctx.host)
  }

  function write(): void {
    if (announced) return
    announced = true
    const who = mode === 'on' ? '' : ' from elsewhere than this machine'
    // A warning of this log: no level and no trace switch hides it.
    port.log.warn(`the admin panel is not set up: open /svc-setup; a setup${who} asks for this token: ${token}`)
  }

  return {
    /** Whether a setup by this request needs the token. If so, the token is written to the log, once. */
    requiredFor(ctx: CoreContext): boolean {
      const required = mode === 'on' || (mode === 'auto' && !isNear(ctx))
      if (required) write()
      return required
    },
    /** Whether a text is the token. In constant time. */
    matches: (text: string): boolean => equalTexts(text, token),
    /** Call at the start: writes the token to the log, once, when the panel is enabled, protected and not set up. */
    announce(): void {
      if (mode === 'off' || !config['admin.enabled'] || config['app.env'] === 'dev') return
      if (setupRequired(port.credentials())) write()
    },
  }
}
