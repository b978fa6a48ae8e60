/**
 * `SVC_MwHeaders` and its settings: header fields that tell browsers what the pages of this application may do.
 *
 * The fields are set before the rest of the chain runs, so error responses have them too, and a field that the
 * application sets replaces one of these.
 */
import { randomBytes } from 'node:crypto'
import { readSettings, settingsTable } from '../chain/settings.ts'
import type { BuiltInGroup, SettingsOf } from '../chain/settings.ts'
import type { CoreContext } from '../http/context.ts'
import { withNonce } from './csp.ts'

/** The group, and what it does outside the chain of a route. */
export interface HeadersGroup extends BuiltInGroup {
  /** Sets the fields of a response without a route, if the settings ask for it. */
  headersWithoutRoute(ctx: CoreContext): void
  /** Makes the nonce of a response and adds it to its policy; '' where the fields were not set. Call it once. */
  nonceOf(ctx: CoreContext): string
}

const table = settingsTable({
  csp: {
    kind: 'string',
    default: "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; object-src 'none'",
    check: checkPolicy,
    meaning: 'The `Content-Security-Policy`: what a page may load and from where, which sites may frame it, and where '
      + 'its forms may lead. If empty, here and below, the field is not set.',
  },
  nosniff: {
    kind: 'boolean', default: true,
    meaning: '`X-Content-Type-Options: nosniff`: browsers trust the declared type of a response.',
  },
  referrer: {
    kind: 'string', default: 'strict-origin-when-cross-origin',
    check: oneOf(
      ...['no-referrer', 'no-referrer-when-downgrade', 'origin', 'origin-when-cross-origin', 'same-origin'],
      ...['strict-origin', 'strict-origin-when-cross-origin', 'unsafe-url'],
    ),
    meaning: '`Referrer-Policy`: what other sites learn about the page with the link.',
  },
  frame: {
    kind: 'string', default: 'DENY', check: oneOf('DENY', 'SAMEORIGIN'),
    meaning: '`X-Frame-Options`, `DENY` or `SAMEORIGIN`, for browsers that do not know `frame-ancestors`.',
  },
  opener: {
    kind: 'string', default: 'same-origin',
    check: oneOf('same-origin', 'same-origin-allow-popups', 'noopener-allow-popups', 'unsafe-none'),
    meaning: '`Cross-Origin-Opener-Policy`: whether a window of another site that opened this page, or was opened by '
      + 'it, can reach it.',
  },
  resource: {
    kind: 'string', default: 'same-origin', check: oneOf('same-origin', 'same-site', 'cross-origin'),
    meaning: '`Cross-Origin-Resource-Policy`: which sites may embed the response as a picture, a script or a video.',
  },
  permissions: {
    kind: 'string', default: '', check: checkFieldValue,
    meaning: '`Permissions-Policy`: which browser features a page may use, such as `camera=()`.',
  },
  hsts_s: {
    kind: 'integer', min: 0, max: 315_360_000, default: 0,
    meaning: 'Seconds for which browsers use only HTTPS for this host (`Strict-Transport-Security`), sent with '
      + 'responses over HTTPS. 0: not sent. Browsers that have received it obey it until then.',
  },
  report_only: {
    kind: 'boolean', default: false,
    meaning: 'Send the policy as `Content-Security-Policy-Report-Only`: browsers report what it would block, in their '
      + 'console and to its `report-to`, and block nothing.',
  },
  everywhere: {
    kind: 'boolean', default: true,
    meaning: 'If the configuration has this group, even as `{}`: set the fields on static files and on responses '
      + 'without a route too, such as a 404. Never on paths that begin with `/svc-`.',
  },
})

/** Makes the group `headers` with its middleware `SVC_MwHeaders`. */
export function createHeadersGroup(): HeadersGroup {
  let current = fieldsOf(readSettings('headers', table, undefined).settings)
  let isEverywhere = false

  function setFields(ctx: CoreContext): void {
    const { outgoing } = ctx
    outgoing.ofHeaders = current.secure !== current.plain && ctx.secure ? current.secure : current.plain
    outgoing.fill(outgoing.ofHeaders)
  }

  return {
    name: 'headers',
    table,
    middleware: new Map([
      [
        'SVC_MwHeaders',
        (ctx, next) => {
          setFields(ctx)
          return next()
        },
      ],
    ]),
    prepare(given) {
      const { settings, warnings } = readSettings('headers', table, given)
      return {
        warnings: [...warnings, ...warningsOf(settings)],
        commit() {
          current = fieldsOf(settings)
          isEverywhere = given !== undefined && settings.everywhere
        },
      }
    },
    headersWithoutRoute(ctx) {
      if (isEverywhere && !ctx.isOfPanel) setFields(ctx)
    },
    nonceOf(ctx) {
      const fields = ctx.outgoingIfAny?.ofHeaders
      if (fields === undefined) return ''
      const nonce = randomBytes(16).toString('base64url')
      const { outgoing } = ctx
      const at = fields.findIndex((text) => text.startsWith('Content-Security-Policy'))
      const [name = '', policy = ''] = fields.slice(at, at + 2)
      if (at >= 0 && outgoing.get(name) === policy) outgoing.set(name, withNonce(policy, nonce))
      if (outgoing.get('Cache-Control') === undefined) outgoing.set('Cache-Control', 'private, no-cache')
      return nonce
    },
  }
}

type Settings = SettingsOf<typeof table>

/** The fields for plain HTTP and for HTTPS, names and values alternating. */
function fieldsOf(settings: Settings): { readonly plain: readonly string[]; readonly secure: readonly string[] } {
  const policy = `Content-Security-Policy${settings.report_only ? '-Report-Only' : ''}`
  const pairs: readonly (readonly [name: string, value: string])[] = [
    [policy, settings.csp],
    ['X-Content-Type-Options', settings.nosniff ? 'nosniff' : ''],
    ['Referrer-Policy', settings.referrer],
    ['X-Frame-Options', settings.frame],
    ['Cross-Origin-Opener-Policy', settings.opener],
    ['Cross-Origin-Resource-Policy', settings.resource],
    ['Permissions-Policy', settings.permissions],
  ]
  const plain = pairs.filter(([, value]) => value !== '').flat()
  const { hsts_s: seconds } = settings
  return { plain, secure: seconds === 0 ? plain : [...plain, 'Strict-Transport-Security', `max-age=${seconds}`] }
}

function warningsOf({ csp }: Settings): string[] {
  if (!/'nonce-/i.test(csp)) return []
  const advice = 'leave it out: a page that uses csp_nonce gets a new one'
  return [`setup.headers.csp has a fixed nonce, which anyone can read; ${advice}`]
}

function checkPolicy(text: string): string | undefined {
  if (checkFieldValue(text) !== undefined) return checkFieldValue(text)
  if (text.includes(',')) return 'must be one policy: a comma would begin a second one'
  const names = text.split(';').map((directive) => directive.trim().split(/\s/, 1)[0] ?? '')
  const wrong = names.find((name) => name !== '' && !/^[a-z-]+$/i.test(name))
  return wrong === undefined ? undefined : `must be directives separated by ";": ${JSON.stringify(wrong)} is not one`
}

/** Visible ASCII and spaces: what every proxy accepts in a field value. */
function checkFieldValue(text: string): string | undefined {
  return /^[\x20-\x7e]*$/.test(text) ? undefined : 'must be of visible ASCII characters and spaces'
}

function oneOf(...values: readonly string[]): (text: string) => string | undefined {
  const isRight = (text: string): boolean => text === '' || values.includes(text)
  return (text) => (isRight(text) ? undefined : `must be ${values.join(', ')}, or empty`)
}
