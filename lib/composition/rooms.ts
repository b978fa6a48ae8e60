/**
 * The optional rooms that a server may need from its start: the shared engine, `dev`, HTTPS and live pages.
 */
import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../config/table.ts'
import { errorOfRoom, loadRoom, MissingRoomError } from '../config/load-room.ts'

const loaders = {
  dev: () => import('../dev/dev.ts'),
  live: () => import('../live/feature.ts'),
  nodes: () => import('../nodes/shared.ts'),
  tls: () => import('../tls/certificates.ts'),
}

type RoomName = keyof typeof loaders

/** The loaded rooms. */
export type Rooms = { readonly [Name in RoomName]?: Awaited<ReturnType<(typeof loaders)[Name]>> }

/** The same files, for `requireRooms`. */
const files: Readonly<Record<RoomName, string>> = {
  dev: '../dev/dev',
  live: '../live/feature',
  nodes: '../nodes/shared',
  tls: '../tls/certificates',
}

/**
 * Loads the rooms that a configuration needs, and live pages if installed: only a request shows whether a page is
 * live.
 * @throws MissingRoomError
 */
export async function loadRooms(config: Config): Promise<Rooms> {
  const rooms: Record<string, unknown> = {}
  for (const [name, neededBy] of neededRooms(config)) {
    rooms[name] = await loadRoom<unknown>(neededBy, loaders[name])
  }
  return { ...rooms, live: await loaders.live().catch(ignoreMissing) } as Rooms // Each has the module of its name.
}

/**
 * Loads the same rooms synchronously, for `createApp` of the public entry, with Node's `require` of ES modules.
 * @throws MissingRoomError
 */
export function requireRooms(config: Config): Rooms {
  const require = createRequire(import.meta.url)
  const load = (name: RoomName, neededBy: string): unknown => {
    try {
      return require(fileURLToPath(new URL(`${files[name]}${extname(import.meta.url)}`, import.meta.url)))
    } catch (error) {
      if (name === 'live') return ignoreMissing(error)
      throw errorOfRoom(neededBy, error)
    }
  }
  const entries = [...neededRooms(config), ['live', ''] as const]
  return Object.fromEntries(entries.map(([name, neededBy]) => [name, load(name, neededBy)])) // Each has its module.
}

/** Throws MissingRoomError when a room that the configuration needs is not loaded. */
export function checkRooms(config: Config, rooms: Rooms): void {
  for (const [name, neededBy] of neededRooms(config)) {
    if (rooms[name] === undefined) throw new MissingRoomError(neededBy, name)
  }
}

/** Returns the rooms that a configuration needs, each with the key that needs it. */
function neededRooms(config: Config): ReadonlyMap<RoomName, string> {
  const needed = new Map<RoomName, string>()
  const { 'server.tls.cert': cert, 'server.tls.key': key } = config
  if (config['shared.url'] !== '') needed.set('nodes', 'shared.url')
  if (config['app.env'] === 'dev') needed.set('dev', 'app.env "dev"')
  if (cert !== '' || key !== '') needed.set('tls', cert === '' ? 'server.tls.key' : 'server.tls.cert')
  return needed
}

function ignoreMissing(error: unknown): undefined {
  if (!(errorOfRoom('', error) instanceof MissingRoomError)) throw error
}
