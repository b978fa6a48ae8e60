/**
 * The tiers of the code, by the rooms of `lib/`: what an auditor reads first, what every start needs besides, and what
 * an installation may leave out. `docs/audit.md` explains them. A test reads the list of tier 3 from this text.
 */

/** 1: between the network and an application; 2: the rest of the least server; 3: may be left out. */
export type Tier = 1 | 2 | 3

/** The rooms of tier 1. */
export const tierOneRooms: readonly string[] = [
  ...['base', 'core', 'http', 'routing', 'chain', 'session', 'csrf', 'tokens', 'access'],
]

/** The rooms of tier 3. Each is loaded when something asks for it. */
export const optionalRooms: readonly string[] = [
  ...['cluster', 'nodes', 'redis', 'dev', 'live', 'websocket', 'jwt', 'tls', 'systemd', 'describe', 'jobs', 'data'],
  ...['commands', 'testing', 'diagnose', 'manual'],
]

/** Returns the tier of a room. What is not in a room of tiers 1 and 3 is tier 2: `bin/` and files beside rooms too. */
export function tierOf(room: string): Tier {
  if (tierOneRooms.includes(room)) return 1
  return optionalRooms.includes(room) ? 3 : 2
}
