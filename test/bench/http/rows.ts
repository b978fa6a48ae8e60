/**
 * A list of objects for the workloads that compress, the same each time: names, numbers, times and texts, as a table of a
 * database has them.
 */
import { Seeded } from '../../support/seeded.ts'

const names = ['Ada Lovelace', 'Grace Hopper', 'Barbara Liskov', 'Radia Perlman', 'Karen Jones']
const states = ['open', 'paid', 'sent', 'returned']

/** As many objects as take so many bytes of JSON, or the first one more. */
export function rowsOf(bytes: number): readonly object[] {
  const random = new Seeded(6)
  const rows: object[] = []
  let length = 2
  while (length < bytes) {
    const row = {
      id: 20_000 + rows.length * 7,
      customer: random.pick(names),
      mail: `user${random.integer(100_000)}@example.org`,
      orderedAt: new Date(1_600_000_000_000 + random.integer(100_000_000) * 1000).toISOString(),
      state: random.pick(states),
      total: random.integer(100_000) / 100,
    }
    rows.push(row)
    length += JSON.stringify(row).length + 1
  }
  return rows
}
