// Emits the changes of the board: `notice` with a kind (`added`, `changed`, `removed`) and the notice, `user` for a new
// user.

import { EventEmitter } from 'node:events'

export const changes = new EventEmitter()
