/** Days, by which a job store counts the jobs that are done. */

/** Returns the local day, `2026-11-28`. @param ms milliseconds since 1970 */
export function dayOf(ms: number): string {
  const date = new Date(ms)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}
