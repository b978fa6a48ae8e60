/**
 * Escaping for HTML: text and quoted attribute values.
 */

const special = /[&<>"']/

/** Returns the text with `&`, `<`, `>`, `"` and `'` as character references; text without them as it is. */
export function escapeHtml(text: string): string {
  return special.test(text) ? text.replace(/[&<>"']/g, reference) : text
}

function reference(character: string): string {
  switch (character) {
    case '&':
      return '&amp;'
    case '<':
      return '&lt;'
    case '>':
      return '&gt;'
    case '"':
      return '&quot;'
    default:
      return '&#39;'
  }
}
