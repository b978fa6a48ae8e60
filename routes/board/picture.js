import { readFile } from 'node:fs/promises'

// What a file is, its first bytes say; the type that came with it is only what the client says.
const signatures = [
  { type: 'image/png', at: 0, bytes: '89504e470d0a1a0a' },
  { type: 'image/jpeg', at: 0, bytes: 'ffd8ff' },
  { type: 'image/gif', at: 0, bytes: '474946383961' },
  { type: 'image/gif', at: 0, bytes: '474946383761' },
  { type: 'image/webp', at: 8, bytes: '57454250' },
]

/** The uploaded picture as `{type, bytes}`, or undefined when it is none. */
export async function readPicture(file) {
  // A small file is in memory, a large one in a temporary file that goes with the request.
  const bytes = file.bytes ?? (await readFile(file.path))
  const found = signatures.find((signature) => bytes.toString('hex', signature.at, signature.at + 8).startsWith(signature.bytes))
  return found && { type: found.type, bytes }
}
