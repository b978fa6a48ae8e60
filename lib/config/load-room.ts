/**
 * Loads an optional room: a folder of `lib/` that an installation may leave out and that no other file imports
 * statically. Each is loaded in one place, when the configuration, the middleware, a route or a command needs it.
 */
import { existsSync } from 'node:fs'
import { basename, dirname, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const lib = dirname(dirname(fileURLToPath(import.meta.url)))

/** Thrown when a missing room is needed. */
export class MissingRoomError extends Error {
  override readonly name = 'MissingRoomError'

  /**
   * @param neededBy what needs the folder, such as `shared.url`; the message begins with it
   * @param folder the name of the folder in `lib/`
   */
  constructor(neededBy: string, folder: string) {
    super(`${neededBy} needs the folder ${basename(lib)}/${folder}, which is missing from this installation`)
  }
}

/**
 * Loads a room.
 * @param neededBy as for `MissingRoomError`
 * @param load imports its first file
 * @throws MissingRoomError when the room, or one that it imports from, is missing; any other error unchanged
 */
export async function loadRoom<Room>(neededBy: string, load: () => Promise<Room>): Promise<Room> {
  try {
    return await load()
  } catch (error) {
    throw errorOfRoom(neededBy, error)
  }
}

/** Returns whether this installation has a room. @param folder its name in `lib/` */
export function hasRoom(folder: string): boolean {
  return existsSync(`${lib}${sep}${folder}`)
}

/** Returns a MissingRoomError for an error of `import()` or `require()` caused by a missing room, else the error. */
export function errorOfRoom(neededBy: string, error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return error
  const path = /Cannot find module '([^']+)'/.exec(message)?.[1] ?? ''
  const [folder = '', ...rest] = relative(lib, path).split(sep)
  const isRoom = folder !== '' && folder !== '..' && rest.length > 0
  return isRoom && !hasRoom(folder) ? new MissingRoomError(neededBy, folder) : error
}
