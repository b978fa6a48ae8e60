// What the actions share that read a form or show it again.

const maxKept = 4000

/** The text of a field as it was meant: '' when it is missing. No longer than what may be kept in a session. */
export function typed(form, name) {
  // A browser counts a line end as one character against maxlength, and then sends two.
  return (form.get(name) ?? '').replaceAll('\r\n', '\n').trim().slice(0, maxKept)
}

/** What the flash bag of a form holds: what is wrong, by field, and the values to show again. It can be read once. */
export function shownAgain(bag) {
  return { errors: bag.get('errors', {}), input: bag.get('input', {}) }
}

/** The form id of a notice, `new` for the one to come: each has its flash bag, so that tabs do not mix. */
export function noticeForm(id) {
  return `notice-${id}`
}
