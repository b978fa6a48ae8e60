// The notices, in memory: newest first. A reload of the routes keeps them, since this file has not changed.

const maxNotices = 100
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

/** Adds a notice and returns it. The oldest goes when there are too many. */
export function addNotice({ author, text, picture }) {
  const notice = { id: ++lastId, author, text, picture, writtenAt: new Date() }
  notices.unshift(notice)
  notices.length = Math.min(notices.length, maxNotices)
  return notice
}

/** Removes what was written before a time. Returns how many that were. */
export function dropBefore(time) {
  const before = notices.length
  const kept = notices.filter((notice) => notice.writtenAt >= time)
  notices.splice(0, before, ...kept)
  return before - kept.length
}
