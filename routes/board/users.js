// The users, in memory: they are gone when the server stops. Of a password only a salted scrypt hash is kept.

import { randomBytes, randomUUID, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

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

/** Ann, ann and ANN are one. */
function keyOf(name) {
  return name.normalize('NFKC').toLowerCase()
}

function hashOf(password, salt) {
  return derive(password.normalize('NFKC'), salt, 32)
}
