/** `createApp` with every room that this installation has. */
import { createApp as create, type App, type AppOptions } from '../../lib/app.ts'
import { MissingRoomError } from '../../lib/config/load-room.ts'
import { loadRooms, type Rooms } from '../../lib/composition/rooms.ts'
import { parseConfig } from '../../lib/config/load.ts'

export type { App, AppOptions }

const rooms: Rooms = {}
for (const config of [{ 'shared.url': 'redis://localhost' }, { 'app.env': 'dev' }, { 'server.tls.cert': 'cert.pem' }]) {
  try {
    Object.assign(rooms, await loadRooms(parseConfig(config, '/').config))
  } catch (error) {
    if (!(error instanceof MissingRoomError)) throw error
  }
}

/** Builds a server, as the function of the public entry does. It does not warn of the Node that runs the tests. */
export function createApp(options: AppOptions = {}): App {
  return create({ rooms, warnsOfNode: false, ...options })
}
