/** The context member of the kit. */
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'

/** The members that the kit adds to the context. */
export interface KitMembers {
  /**
   * The nonce of this answer, for `<script nonce>` and `<style nonce>`: 128 random bits. The first use adds it to the
   * Content-Security-Policy of `SVC_MwHeaders`, and sets `Cache-Control: private, no-cache` unless the field is set. ''
   * where that middleware did not run.
   */
  readonly cspNonce: string
  /** The name of `cspNonce` in views. */
  readonly csp_nonce: string
}

/**
 * Makes the feature.
 * @param nonceOf makes the nonce of an answer
 */
export function kitFeature(nonceOf: (ctx: CoreContext) => string): Feature {
  return {
    name: 'kit',
    members: [{ name: 'cspNonce', aliases: ['csp_nonce'], inViews: 'aliases', make: nonceOf }],
  }
}
