/**
 * The one-time token of the first setup: a person who can read the server's log may set it up, from anywhere.
 *
 * A loopback address by itself proves little: behind a proxy every client has one, and not every proxy sends a
 * forwarding field. A web page in a browser on this machine has one too if its name was rebound to 127.0.0.1. So
 * without the token the request must also have a loopback host, and a server started by a service manager always
 * requires the token (`systemd/managed.ts`).
 */
import { randomBytes } from 'node:crypto'
import type { CoreContext } from '../http/context.ts'
import { isLoopbackHost } from '../http/host.ts'
import { isLoopback } from '../http/ip-address.ts'
import { setupRequired } from './credentials.ts'
import { equalTexts } from './password.ts'
import type { AccessPort } from './access-port.ts'

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

  function isLocal(ctx: CoreContext): boolean {
    if (forwardingFields.some((name) => ctx.header(name) !== undefined)) return false
    return isLoopback(ctx.ip) && isLoopbackHost(ctx.host)
  }

  function write(): void {
    if (announced) return
    announced = true
    const from = mode === 'on' ? '' : ' from another machine'
    // A warning in this log: no level and no trace switch hides it.
    port.log.warn(`the admin panel is not set up: open /svc-setup; a setup${from} requires this token: ${token}`)
  }

  return {
    /** Whether a setup by this request requires the token. If so, the token is logged, once. */
    requiredFor(ctx: CoreContext): boolean {
      const required = mode === 'on' || (mode === 'auto' && !isLocal(ctx))
      if (required) write()
      return required
    },
    /** Whether a text is the token. In constant time. */
    matches: (text: string): boolean => equalTexts(text, token),
    /** Call at the start: logs the token, once, if the panel is enabled, protected and not set up. */
    announce(): void {
      if (mode === 'off' || !config['admin.enabled'] || config['app.env'] === 'dev') return
      if (setupRequired(port.credentials())) write()
    },
  }
}
