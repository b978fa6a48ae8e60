// The notices, in memory: newest first. A reload of the routes keeps them, since this file has not changed; `keep.js`
// keeps them across restarts.

import { changes } from './changes.js'

const maxNotices = 100
const maxText = 1000
const notices = []
let lastId = 0

/** All notices, newest first. */
export function allNotices() {
  return notices
}

/** Returns the notice with an id (text or number), or undefined. */
export function findNotice(id) {
  return notices.find((notice) => String(notice.id) === String(id))
}

/** Adds a notice and returns it. Drops the oldest if there are too many. `owner` is a user's id, or undefined. */
export function addNotice({ author, owner, text, picture }) {
  const notice = { id: ++lastId, author, owner, text, picture, writtenAt: new Date() }
  notices.unshift(notice)
  changes.emit('notice', 'added', notice)
  if (notices.length > maxNotices) removeNotice(notices.at(-1))
  return notice
}

/** Changes the text of a notice. */
export function changeNotice(notice, text) {
  notice.text = text
  changes.emit('notice', 'changed', notice)
}

/** Removes a notice. */
export function removeNotice(notice) {
  notices.splice(notices.indexOf(notice), 1)
  changes.emit('notice', 'removed', notice)
}

/** Returns whether a user (undefined for a guest) may change a notice. */
export function mayChange(notice, user) {
  return user !== undefined && notice.owner === user.id
}

/** Returns the error in the text of a notice, or undefined. */
export function textProblem(text) {
  if (text === '') return 'The notice is empty.'
  if (text.length > maxText) return `The notice may have at most ${maxText} characters: it has ${text.length}.`
}

/** Removes notices written before a time. Returns their number. */
export function dropBefore(time) {
  const old = notices.filter((notice) => notice.writtenAt < time)
  for (const notice of old) removeNotice(notice)
  return old.length
}

/** Returns a notice as public JSON. `owner` only shows which notices belong to the same user. */
export function asJson({ id, author, owner, text, picture, writtenAt }) {
  return { id, author, owner, text, written_at: writtenAt.toISOString(), picture: picture && `/pictures/${id}` }
}

/** Returns everything to save, as JSON. */
export function noticesToKeep() {
  const kept = notices.map(({ picture, ...notice }) => {
    return { ...notice, picture: picture && { ...picture, bytes: picture.bytes.toString('base64') } }
  })
  return { lastId, notices: kept }
}

/** Restores saved notices, unless there are notices: then a reload has only loaded other modules again. */
export function restoreNotices(kept) {
  if (lastId > 0) return
  lastId = kept.lastId
  for (const { picture, writtenAt, ...notice } of kept.notices) {
    const bytes = picture && Buffer.from(picture.bytes, 'base64')
    notices.push({ ...notice, picture: picture && { ...picture, bytes }, writtenAt: new Date(writtenAt) })
  }
}
