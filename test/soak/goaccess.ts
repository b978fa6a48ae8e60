/** What GoAccess, a program of Debian's, reads in an access log. */
import { spawnSync } from 'node:child_process'
import { add, nothing, type Totals } from './access-totals.ts'

interface GoAccessReport {
  readonly general: {
    readonly total_requests: number
    readonly valid_requests: number
    readonly failed_requests: number
    readonly bandwidth: number
  }
  readonly status_codes: { readonly data: readonly { readonly items?: readonly Item[]; readonly data: string }[] }
}

interface Item {
  readonly data: string
  readonly hits: { readonly count: number }
}

/** Totals of the files together, and the lines that GoAccess could not read. Throws when it cannot be run. */
export function readWithGoAccess(files: readonly string[]): Totals & { readonly failed: number } {
  const args = [...files, '--log-format=COMBINED', '--no-global-config', '--output=-', '--output-format=json']
  const { status, error, stdout, stderr } = spawnSync('goaccess', args, { encoding: 'utf8', maxBuffer: 2 ** 28 })
  if (error !== undefined) {
    throw new Error(`Cannot run goaccess: ${error.message}. Install it: apt-get install --no-install-recommends goaccess`)
  }
  if (status !== 0) throw new Error(`goaccess ended with ${String(status)}: ${stderr}`)
  const { general, status_codes: codes } = JSON.parse(stdout) as GoAccessReport
  const byClass: Record<string, number> = {}
  for (const { items = [] } of codes.data) {
    for (const { data, hits } of items) {
      const name = `${data.charAt(0)}xx`
      byClass[name] = (byClass[name] ?? 0) + hits.count
    }
  }
  const totals = add({ requests: general.valid_requests, byClass, bytes: general.bandwidth }, nothing)
  return { ...totals, failed: general.failed_requests }
}
