/**
 * The settings of the CSRF middlewares: `setup.csrf`.
 */
import { isToken } from '../base/token.ts'
import { checkRedirect, settingsTable, type SettingsOf } from '../chain/settings.ts'

/** The rows of the group. */
export const csrfTable = settingsTable({
  redirect: {
    kind: 'string', default: '', check: (text) => (text === '' ? undefined : checkRedirect(text)),
    meaning: 'Where a refused request is sent. Empty: it is answered 403 with JSON.',
  },
  header: {
    kind: 'string', default: 'x-csrf-token', check: checkHeaderName,
    meaning: 'The request header that carries the token, in upper or lower case.',
  },
  field: {
    kind: 'string', default: '_csrf', check: (text) => (text === '' ? 'must not be empty' : undefined),
    meaning: 'The form field that carries the token, read where the header is not sent.',
  },
  lapse: {
    kind: 'integer', min: 0, max: 31_536_000, default: 0,
    meaning: 'Seconds for which a signed token counts; 0: no end. 3600 limits its reuse.',
  },
})

/** The values of the group. */
export type CsrfSettings = SettingsOf<typeof csrfTable>

function checkHeaderName(text: string): string | undefined {
  return isToken(text) ? undefined : 'must be the name of a header field (a token of RFC 9110)'
}
