// The users, in memory; `keep.js` keeps them over a restart. Of a password there is only a salted scrypt hash.

import { randomBytes, randomUUID, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { changes } from './changes.js'

const derive = promisify(scrypt)
const users = new Map()
/** Takes the place of a user who is not there, so that a wrong name takes as long as a wrong password. */
const nobody = { salt: randomBytes(16), hash: randomBytes(32) }

/** Adds a user and returns `{id, name}`; undefined when the name is taken. */
export async function addUser(name, password) {
  const salt = randomBytes(16)
  const hash = await hashOf(password, salt)
  if (users.has(keyOf(name))) return undefined // Asked last: somebody may have come first while the hash was made.
  const user = { id: randomUUID(), name, salt, hash }
  users.set(keyOf(name), user)
  changes.emit('user')
  return { id: user.id, name }
}

/** The user as `{id, name}`; undefined when there is none of this name or the password is another. */
export async function findUser(name, password) {
  const user = users.get(keyOf(name))
  const { salt, hash } = user ?? nobody
  const isRight = timingSafeEqual(await hashOf(password, salt), hash)
  return user && isRight ? { id: user.id, name: user.name } : undefined
}

/** What is wrong with a name; undefined when nothing is. */
export function nameProblem(name) {
  if (typeof name !== 'string' || name.trim() === '') return 'The name is missing.'
  if (name.length > 40) return 'The name may have 40 characters.'
}

/** All that has to be kept, in JSON. */
export function usersToKeep() {
  return [...users.values()].map(({ id, name, salt, hash }) => {
    return { id, name, salt: salt.toString('base64'), hash: hash.toString('base64') }
  })
}

/** Brings back what was kept, unless there are users: then only other modules were loaded anew. */
export function restoreUsers(kept) {
  if (users.size > 0) return
  for (const { id, name, salt, hash } of kept) {
    users.set(keyOf(name), { id, name, salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') })
  }
}

/** Ann, ann and ANN are one. */
function keyOf(name) {
  return name.normalize('NFKC').toLowerCase()
}

function hashOf(password, salt) {
  return derive(password.normalize('NFKC'), salt, 32)
}
