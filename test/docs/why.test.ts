/** Checks `docs/why.md`: its figures of our own code, its tables against the packages that are counted and the measured rates. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { assertCurrent } from '../support/current.ts'
import { codeOf, readPage, root, tableBelow } from '../support/markdown.ts'
import { renderWhy } from '../support/why-page.ts'

const page = readPage('docs/why.md')
const features = tableBelow(page, '## What is there')
const sizes = tableBelow(page, '## What a team installs')
// The file is in this repository, and `npm run bench -- packages` reads it too.
const { day, frameworks } = JSON.parse(readFileSync(new URL('test/bench/packages.json', root), 'utf8')) as {
  day: string
  frameworks: ({ name: string } & Record<'alone' | 'pages' | 'whole', { packages: Record<string, string> }>)[]
}
/** Packages that others need: they bring no feature by themselves. */
const helpers = ['@fastify/cookie', 'cookie-parser', 'pino', 'prom-client', 'redis', '@adonisjs/redis']

describe('docs/why.md', () => {
  it('has the lines and the size of this server, which npm run docs writes', () => {
    const rendered = renderWhy()
    assert.match(rendered, /in \d\d,000 lines, without packages[^]*^\| svc \| {2}\| 0, \d\d,\d{3}, \d\.\d \| 0, \d\d,\d{3}, \d\.\d \|$/m)
    assertCurrent('why.md', rendered)
  })

  it('names the packages that are counted, in the columns of their frameworks, and in parentheses others', () => {
    for (const [at, { name, pages, whole }] of frameworks.entries()) {
      const cells = features.map((row) => row[at + 2] ?? '').join('; ')
      const counted = Object.keys({ ...pages.packages, ...whole.packages }).filter((one) => !helpers.includes(one))
      const named = codeOf(cells.replace(/\([^)]*`[^)]*\)/g, '')).map((one) => one.replace(/^\//, `@${name.toLowerCase()}/`))
      assert.deepEqual([...new Set(named)].sort(), counted.sort(), name)
    }
  })

  it('compares the sizes of its table, of the day of the packages', () => {
    assert.deepEqual(sizes.map(([name]) => name), [...frameworks.map(({ name }) => name), 'svc'])
    const rows = sizes.slice(0, -1).map((row) => (row.at(-1) ?? '').split(', ').map((figure) => Number(figure.replaceAll(',', ''))))
    const range = (at: number): string => {
      const figures = rows.map((row) => row[at] ?? 0)
      return `${Math.min(...figures).toLocaleString('en')} to ${Math.max(...figures).toLocaleString('en')}`
    }
    assert.match(page.prose.replace(/\s+/g, ' '), new RegExp(`it is ${range(0)} packages and ${range(1)} lines`))
    const date = new Date(day).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })
    assert.ok(page.prose.includes(`versions of ${date}`))
  })

  it('has the rates of docs/performance.md', () => {
    const performance = readPage('docs/performance.md')
    const [both, node24] = [tableBelow(performance, '## Requests per second'), tableBelow(performance, '### On Node 24.22')]
    const rates = tableBelow(page, '## Rates').filter((row) => row.length === 5)
    assert.ok(rates.length > 4)
    for (const [workload, ...figures] of rates) {
      // Of Node 24 without the intervals; the row of Node 26 follows that of the earlier Node 24.
      const ratios = (node24.find(([name]) => name === workload) ?? []).slice(3).map((cell) => cell.replace(/ \[.*$/, ''))
      const at = both.findIndex(([name]) => name === workload)
      assert.deepEqual(figures, [...ratios, ...(both[at + 1] ?? []).slice(4)], workload)
    }
  })
})
