/**
 * What the operator should know of a node; `docs/troubleshooting.md` explains each.
 */

/** @param problem what it cannot take up, and why */
export function notAsOthers(problem: string): string {
  return `this node is not as the others: ${problem}`
}

/** @param reason what the engine says */
export function listRefused(reason: string): string {
  return `the shared engine refuses the list of nodes: ${reason}`
}

/** The credentials of the configuration are not the shared ones. */
export const credentialsDiffer =
  'admin.user, admin.password and admin.secret here are not those that the other nodes share: a sign-in here does not count'
  + ' there; give all nodes the same ones, or leave them out of svc.json here'
