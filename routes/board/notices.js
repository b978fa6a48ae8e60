// The notices, in memory: newest first. A reload of the routes keeps them, since this file has not changed.

const maxNotices = 100
const maxText = 1000
const notices = []
let lastId = 0

/** All notices, newest first. */
export function allNotices() {
  return notices
}

/** The notice with an id (text or number), or undefined. */
export function findNotice(id) {
  return notices.find((notice) => String(notice.id) === String(id))
}

/** Adds a notice and returns it. The oldest goes when there are too many. `owner` is a user's id, or undefined. */
export function addNotice({ author, owner, text, picture }) {
  const notice = { id: ++lastId, author, owner, text, picture, writtenAt: new Date() }
  notices.unshift(notice)
  notices.length = Math.min(notices.length, maxNotices)
  return notice
}

/** Takes a notice down. */
export function removeNotice(notice) {
  notices.splice(notices.indexOf(notice), 1)
}

/** Whether a user (or nobody: undefined) may change a notice. */
export function mayChange(notice, user) {
  return user !== undefined && notice.owner === user.id
}

/** What is wrong with the text of a notice; undefined when nothing is. */
export function textProblem(text) {
  if (text === '') return 'The notice is empty.'
  if (text.length > maxText) return `The notice may have ${maxText} characters: it has ${text.length}.`
}

/** Removes what was written before a time. Returns how many that were. */
export function dropBefore(time) {
  const before = notices.length
  const kept = notices.filter((notice) => notice.writtenAt >= time)
  notices.splice(0, before, ...kept)
  return before - kept.length
}
