import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeFigures } from './document.ts'
import type { Measurement, ServerFigures } from './measure.ts'
import { toSection, type Section } from './tables.ts'
import { workloads } from './workloads.ts'

const order = workloads.map(({ title }) => title)
const frame = (content: string): string =>
  `# Page\n\n<!-- figures: written by npm run bench -->${content}<!-- end of the figures -->\n\nAfter.\n`

test('a table has medians, ratios made round by round, and intervals from 6 rounds on', () => {
  const { title, rows } = sectionOf('json', { rates: { bare: [100, 50, 200], svc: [90, 55, 100] } })
  assert.equal(title, 'JSON with one parameter')
  assert.deepEqual(rows, [
    '| 20.20.2 | 64 | bare | 100 | 1.000 | 10.0 | 1.000 | 1.00 | 2.00 | 1.00 | 40, 50 | 0.900 |',
    '| 20.20.2 | 64 | svc | 90 | 0.900 | 11.1 | 0.900 | 1.00 | 2.00 | 1.00 | 40, 50 |  |',
  ])
  const bare = [100, 100, 100, 100, 100, 100]
  const longer = sectionOf('json', { rates: { bare, svc: [90, 91, 92, 94, 95, 96] } })
  assert.match(longer.rows[1] ?? '', /\| svc \| 93 \| 0\.930 \[0\.900, 0\.960\] \|/)
})

test('the figures of several runs stand together, in the order of workloads, Nodes and connections', () => {
  let text = frame('\n')
  const runs = [
    sectionOf('view', {}),
    sectionOf('json', { node: '24.1.0', connections: 64 }),
    sectionOf('json', { connections: 1000 }),
    sectionOf('json', { connections: 64, difference: 'no `date`' }),
  ]
  for (const section of runs) text = writeFigures(text, { conditions: 'A machine.', sections: [section], order })
  assert.deepEqual(text.match(/^### .*/gm), ['### JSON with one parameter', '### A view of 4 KiB with 20 expressions'])
  const found = [...text.matchAll(/^\| (\d\S* \| \d+) \| svc/gm)].map(([, group]) => group)
  assert.deepEqual(found, ['20.20.2 | 64', '20.20.2 | 1000', '24.1.0 | 64', '20.20.2 | 64'])
  assert.match(text, /^- svc: no `date`$/m)
  assert.match(text, /^# Page\n/)
  assert.match(text, /\n\nAfter\.\n$/)
})

test('a run replaces the rows of the same major version and connections, and nothing else', () => {
  const options = { conditions: 'A machine.', order }
  const difference = 'no `date`'
  const sections = [sectionOf('json', { connections: 1 }), sectionOf('json', { difference }), sectionOf('text', {})]
  let before = frame('')
  for (const section of sections) before = writeFigures(before, { ...options, sections: [section] })
  const newer = sectionOf('json', { node: '20.21.0', rates: { bare: [7], svc: [7] } })
  const after = writeFigures(before, { ...options, sections: [newer] })
  assert.deepEqual(
    after.split('\n').filter((line) => !before.includes(line)),
    newer.rows,
  )
  assert.equal(writeFigures(after, { ...options, sections: [newer] }), after)
})

test('under other conditions the figures begin anew', () => {
  const before = writeFigures(frame(''), { conditions: 'A machine.', sections: [sectionOf('text', {})], order })
  const after = writeFigures(before, { conditions: 'Another.', sections: [sectionOf('json', {})], order })
  assert.deepEqual(after.match(/^### .*/gm), ['### JSON with one parameter'])
  assert.ok(!after.includes('A machine.'))
})

test('says when the document has no place for figures', () => {
  const options = { conditions: '', sections: [], order }
  assert.throws(() => writeFigures('# Page\n', options), /Cannot write the figures: the marks/)
})

interface Given {
  readonly node?: string
  readonly connections?: number
  readonly rates?: Readonly<Record<string, readonly number[]>>
  readonly difference?: string
}

/** A section of bare and svc; a processor that is always busy, and latencies of 1 and 2 ms. */
function sectionOf(name: string, { node = '20.20.2', connections = 64, rates, difference }: Given): Section {
  const workload = workloads.find((one) => one.name === name)
  assert.ok(workload)
  const servers = Object.entries(rates ?? { bare: [100], svc: [90] }).map(([server, list]): ServerFigures => {
    const samples = list.map((rate) => ({ requestsPerSecond: rate, cpuUs: 1000 / rate, p50Ms: 1, p99Ms: 2 }))
    return { server, samples, restMiB: 40, loadedMiB: 50 }
  })
  const differences = new Map(difference === undefined ? [] : [['svc', difference]])
  const measurement: Measurement = { workload, node, connections, servers, differences }
  return toSection([measurement])
}
