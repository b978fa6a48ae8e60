/**
 * Numbers the turns of the event loop, so that a file is looked at once in a turn and not for every request.
 * Under load a turn serves dozens of requests, so a `stat` a turn is a small part of a `stat` a request.
 */
let turn = 0
let endIsAwaited = false

/** The number of the present turn: one more than that of the turn before in which it was asked for. */
export function currentTurn(): number {
  if (!endIsAwaited) {
    endIsAwaited = true
    setImmediate(endTurn)
  }
  return turn
}

function endTurn(): void {
  endIsAwaited = false
  turn += 1
}
