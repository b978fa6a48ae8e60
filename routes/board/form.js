// Helpers for actions that read a form or show it again.

const maxKept = 4000

/** Returns the text of a field, or '' if it is missing, cut to the length that a session may keep. */
export function typed(form, name) {
  // A browser counts a line end as one character for maxlength, but sends two.
  return (form.get(name) ?? '').replaceAll('\r\n', '\n').trim().slice(0, maxKept)
}

/** Takes from the flash bag of a form the errors by field, and the values to show again. They can be read once. */
export function shownAgain(bag) {
  return { errors: bag.get('errors', {}), input: bag.get('input', {}) }
}

/** Returns the form id of a notice, `new` for a new one: each has its own flash bag, so that tabs do not mix. */
export function noticeForm(id) {
  return `notice-${id}`
}
