// Tells those who want to know what changes on the board: `notice` with a kind (`added`, `changed`, `removed`) and the
// notice, `user` for a new user.

import { EventEmitter } from 'node:events'

export const changes = new EventEmitter()
