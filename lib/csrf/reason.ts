/**
 * Why a request that changes something is refused.
 */

/** The `reason` of a refusal and of its log line. */
export type CsrfReason = keyof typeof csrfReasons

/** Every reason, with the sentence that a person is told by the flash message. */
export const csrfReasons = {
  missing: 'This form came without its security token. Please open the page again and send it once more.',
  malformed: 'The security token of this form is damaged. Please open the page again and send it once more.',
  expired: 'This form was open for too long. Please open the page again and send it once more.',
  signature: 'The security token of this form is not valid. Please open the page again and send it once more.',
  mismatch: 'This form does not belong to your session. Please open the page again and send it once more.',
  cross_site: 'This form was sent from another site, so nothing was changed.',
} as const
