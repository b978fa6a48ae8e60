/**
 * Recognizes names of secret fields. Their values are not shown, and not kept for a form.
 */

const secretPart = /pass|secret|token|^_csrf$|^_resource_id$/i
const secretWords: ReadonlySet<string> = new Set(['otp', 'pin', 'cvc', 'cvv', 'card', 'iban'])
/** Between the words of `card_number`, `cardNumber`, `userPIN` and `otp1`. */
const betweenWords = /[^A-Za-z]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/

/** Whether a name contains `pass`, `secret` or `token`, has a word such as `pin` or `card`, or is a built-in token. */
export function mayBeSecret(name: string): boolean {
  return secretPart.test(name) || name.split(betweenWords).some((word) => secretWords.has(word.toLowerCase()))
}
