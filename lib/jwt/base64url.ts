/**
 * Base64url as JSON Web Signatures have it (RFC 7515, section 2): without padding, and one text for one sequence of
 * bytes.
 *
 * Surprise: Node's decoder passes over what is no base64url. What it read is written anew and held against the text,
 * which finds foreign characters, padding, a length that cannot be and bits set behind the last byte.
 */

/** The bytes; undefined when the text is not their canonical form. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}
