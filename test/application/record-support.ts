// Shared by the tests of route records: the parsing rules, and the seeded check of arbitrary JSON values.
import assert from 'node:assert/strict'
import { parseRecord } from '../../lib/application/record.ts'
import { Seeded } from '../support/seeded.ts'

const known = ['SVC_MwSession', 'SVC_MwCsrf', 'audit']
export const rules = {
  root: '/srv/app',
  middlewareKnown: (name: string) => known.includes(name),
  middlewareNames: () => known,
}

/** Returns an arbitrary object with fields of a record, and others. */
export function anyRecord(seeded: Seeded): unknown {
  const fields = ['name', 'url', 'pattern', 'action', 'method', 'middleware', 'scope', 'summary', 'hidden', '__proto__', 'x']
  const values = ['', 'a', '/a', '/:x', '../x', 'svc.a', 'GET', '*', ',', '\0', '%', '@', null, 0, true, [], {}]
  const pairs = Array.from({ length: 3 + seeded.integer(6) }, () => [seeded.pick(fields), seeded.pick(values)])
  return Object.fromEntries(pairs)
}

/** Parses arbitrary JSON values: each is a record or has problems. */
export function checkAnyRecords(rounds: number): void {
  const seeded = new Seeded(5)
  let records = 0
  for (let round = 0; round < rounds; round += 1) {
    const value = anyRecord(seeded)
    const parsed = parseRecord(value, rules)
    if ('record' in parsed) records += 1
    else assert.ok(parsed.problems.length > 0, JSON.stringify(value))
  }
  assert.ok(records > rounds / 4_000, String(records))
}
