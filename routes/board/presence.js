// WebSocket /board/presence : who is looking at the board, told to every window each time that somebody comes or goes.

const maxNames = 20
const delayMs = 100
/** By the connection of a window, the name of who is signed in; undefined for a guest. */
const windows = new Map()
let timer

export const websocket = {
  open(ws, { state }) {
    windows.set(ws, state.user?.name)
    tellSoon()
  },
  close(ws) {
    windows.delete(ws)
    tellSoon()
  },
}

/** When many come at once, as after a restart, each window is told once rather than once for each of them. */
function tellSoon() {
  timer ??= setTimeout(tell, delayMs).unref()
}

function tell() {
  timer = undefined
  const all = [...windows.values()]
  const people = new Set(all.filter((name) => name !== undefined))
  const guests = all.filter((name) => name === undefined).length
  const text = JSON.stringify({ people: people.size, names: [...people].slice(0, maxNames), guests })
  for (const ws of windows.keys()) ws.send(text)
}
