// The users, in memory; `keep.js` keeps them across restarts. Passwords are stored only as salted scrypt hashes.

import { randomUUID } from 'node:crypto'
import { changes } from './changes.js'

const users = new Map()

/** Adds a user and returns `{id, name}`; undefined if the name is taken. `password` is `ctx.password`. */
export async function addUser(name, text, password) {
  const hash = await password.hash(text.normalize('NFKC'))
  if (users.has(keyOf(name))) return undefined // Checked last: the name may have been taken while the hash was computed.
  const user = { id: randomUUID(), name, hash }
  users.set(keyOf(name), user)
  changes.emit('user')
  return { id: user.id, name }
}

/** Returns the user as `{id, name}`; undefined if the name is unknown or the password wrong. */
export async function findUser(name, text, password) {
  const user = users.get(keyOf(name))
  const { ok } = await password.verify(text.normalize('NFKC'), user?.hash) // A wrong name takes as long as a wrong password.
  return ok ? { id: user.id, name: user.name } : undefined
}

/** Returns the error in a name, or undefined. */
export function nameProblem(name) {
  if (typeof name !== 'string' || name.trim() === '') return 'The name is missing.'
  if (name.length > 40) return 'The name may have at most 40 characters.'
}

/** Returns everything to save, as JSON. */
export function usersToKeep() {
  return [...users.values()]
}

/** Restores saved users, unless there are users: then a reload has only loaded other modules again. */
export function restoreUsers(kept) {
  if (users.size > 0) return
  for (const user of kept) users.set(keyOf(user.name), user)
}

/** Returns the same key for Ann, ann and ANN. */
function keyOf(name) {
  return name.normalize('NFKC').toLowerCase()
}
