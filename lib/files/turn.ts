/**
 * Numbers the turns of the event loop, so that a file is checked once per turn and not for every request.
 * Under load a turn serves dozens of requests, so this saves most of the `stat` calls.
 */
let turn = 0
let endIsScheduled = false

/** Returns the number of the current turn. Numbers are consecutive for the turns in which this is called. */
export function currentTurn(): number {
  if (!endIsScheduled) {
    endIsScheduled = true
    setImmediate(endTurn)
  }
  return turn
}

function endTurn(): void {
  endIsScheduled = false
  turn += 1
}
