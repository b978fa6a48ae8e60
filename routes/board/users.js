// The users, in memory; `keep.js` keeps them over a restart. Of a password there is only a salted scrypt hash.

import { randomUUID } from 'node:crypto'
import { changes } from './changes.js'

const users = new Map()

/** Adds a user and returns `{id, name}`; undefined when the name is taken. `password` is that of the context. */
export async function addUser(name, text, password) {
  const hash = await password.hash(text.normalize('NFKC'))
  if (users.has(keyOf(name))) return undefined // Asked last: somebody may have come first while the hash was made.
  const user = { id: randomUUID(), name, hash }
  users.set(keyOf(name), user)
  changes.emit('user')
  return { id: user.id, name }
}

/** The user as `{id, name}`; undefined when there is none of this name or the password is another. */
export async function findUser(name, text, password) {
  const user = users.get(keyOf(name))
  const { ok } = await password.verify(text.normalize('NFKC'), user?.hash) // A wrong name takes as long as a wrong password.
  return ok ? { id: user.id, name: user.name } : undefined
}

/** What is wrong with a name; undefined when nothing is. */
export function nameProblem(name) {
  if (typeof name !== 'string' || name.trim() === '') return 'The name is missing.'
  if (name.length > 40) return 'The name may have 40 characters.'
}

/** All that has to be kept, in JSON. */
export function usersToKeep() {
  return [...users.values()]
}

/** Brings back what was kept, unless there are users: then only other modules were loaded anew. */
export function restoreUsers(kept) {
  if (users.size > 0) return
  for (const user of kept) users.set(keyOf(user.name), user)
}

/** Ann, ann and ANN are one. */
function keyOf(name) {
  return name.normalize('NFKC').toLowerCase()
}
