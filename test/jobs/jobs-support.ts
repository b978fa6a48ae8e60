/** Runs an action in a time zone, and sets back that of the machine. */
export function inZone(zone: string, action: () => void): void {
  const zoneOfTheMachine = process.env.TZ
  process.env.TZ = zone
  try {
    action()
  } finally {
    if (zoneOfTheMachine === undefined) delete process.env.TZ
    else process.env.TZ = zoneOfTheMachine
  }
}
