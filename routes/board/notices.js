// The notices, in memory: newest first. A reload of the routes keeps them, since this file has not changed; `keep.js`
// keeps them over a restart.

import { changes } from './changes.js'

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
  changes.emit('notice', 'added', notice)
  if (notices.length > maxNotices) removeNotice(notices.at(-1))
  return notice
}

/** Changes the text of a notice. */
export function changeNotice(notice, text) {
  notice.text = text
  changes.emit('notice', 'changed', notice)
}

/** Takes a notice down. */
export function removeNotice(notice) {
  notices.splice(notices.indexOf(notice), 1)
  changes.emit('notice', 'removed', notice)
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
  const old = notices.filter((notice) => notice.writtenAt < time)
  for (const notice of old) removeNotice(notice)
  return old.length
}

/** A notice as anybody may see it, in JSON. `owner` tells nothing but which notices are of one user. */
export function asJson({ id, author, owner, text, picture, writtenAt }) {
  return { id, author, owner, text, written_at: writtenAt.toISOString(), picture: picture && `/pictures/${id}` }
}

/** All that has to be kept, in JSON. */
export function noticesToKeep() {
  const kept = notices.map(({ picture, ...notice }) => {
    return { ...notice, picture: picture && { ...picture, bytes: picture.bytes.toString('base64') } }
  })
  return { lastId, notices: kept }
}

/** Brings back what was kept, unless there are notices: then only other modules were loaded anew. */
export function restoreNotices(kept) {
  if (lastId > 0) return
  lastId = kept.lastId
  for (const { picture, writtenAt, ...notice } of kept.notices) {
    const bytes = picture && Buffer.from(picture.bytes, 'base64')
    notices.push({ ...notice, picture: picture && { ...picture, bytes }, writtenAt: new Date(writtenAt) })
  }
}
