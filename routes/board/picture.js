import { readFile } from 'node:fs/promises'

// The first bytes identify a file; the type sent with it is only the client's claim.
const signatures = [
  { type: 'image/png', at: 0, bytes: '89504e470d0a1a0a' },
  { type: 'image/jpeg', at: 0, bytes: 'ffd8ff' },
  { type: 'image/gif', at: 0, bytes: '474946383961' },
  { type: 'image/gif', at: 0, bytes: '474946383761' },
  { type: 'image/webp', at: 8, bytes: '57454250' },
]

/** Returns the uploaded picture as `{type, bytes}`, or undefined if it is not a picture. */
export async function readPicture(file) {
  // A small file is in memory, a large one in a temporary file that is deleted with the request.
  const bytes = file.bytes ?? (await readFile(file.path))
  const found = signatures.find((signature) => bytes.toString('hex', signature.at, signature.at + 8).startsWith(signature.bytes))
  return found && { type: found.type, bytes }
}
