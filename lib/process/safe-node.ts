/**
 * Which versions of Node are safe, as known when this version of svc was made: by the security releases that
 * https://nodejs.org/en/blog/vulnerability announces. Each release of svc brings the table up to date.
 */

/** The date of the last security releases that the table knows. */
const knownUntil = '2026-10-21'
const asKnown = `as known on ${knownUntil}`
/** The first version of each supported line that has all fixes until then. */
const safeVersions: readonly string[] = ['22.23.4', '24.22.1', '26.12.1']

/**
 * Returns the warning about a version of Node with known vulnerabilities, or one that gets no fixes any more; none for
 * a safe one, and for one of a later line.
 * @param version such as `24.22.1`
 */
export function nodeWarnings(version: string = process.versions.node): readonly string[] {
  const [major = 0, ...rest] = numbersOf(version)
  const safe = safeVersions.find((each) => numbersOf(each)[0] === major)
  const lines = `${safeVersions.slice(0, -1).join(', ')} or ${safeVersions.at(-1)}`
  if (safe === undefined) {
    const isLater = safeVersions.every((each) => (numbersOf(each)[0] ?? 0) < major)
    const advice = `run Node ${lines}, or later`
    const problem = `Node ${version} gets no security fixes from nodejs.org any more`
    return isLater ? [] : [`${problem}: ${advice} (${asKnown})`]
  }
  const [, minor = 0, patch = 0] = numbersOf(safe)
  const [ownMinor = 0, ownPatch = 0] = rest
  if (ownMinor > minor || (ownMinor === minor && ownPatch >= patch)) return []
  return [`Node ${version} has known vulnerabilities: run Node ${safe} or later (${asKnown})`]
}

/** Returns the numbers of a version: major, minor, patch. */
export function numbersOf(version: string): readonly number[] {
  return version.split('.').map((part) => Number.parseInt(part))
}
