// The schemas by which editors check route files, job files and the middleware configuration, against the server's own readers.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parseRecord } from '../../lib/application/record.ts'
import { readRouteFiles } from '../../lib/application/route-files.ts'
import { readValue, type Row } from '../../lib/base/value.ts'
import type { BuiltInGroup } from '../../lib/chain/settings.ts'
import { SettingsError } from '../../lib/chain/settings.ts'
import { initApplication } from '../../lib/commands/init.ts'
import { JobFiles } from '../../lib/jobs/job-files.ts'
import { jobTable } from '../../lib/jobs/job-record.ts'
import { MiddlewareError, readMiddlewareConfig } from '../../lib/modules/middleware-config.ts'
import { createMessageGroup } from '../../lib/validation/messages.ts'
import { anyRecord } from '../application/record-support.ts'
import { writeFiles } from '../support/application.ts'
import { assertCurrent } from '../support/current.ts'
import { builtInGroups } from '../support/documentation.ts'
import { meaningOf, renderJobSchema } from '../support/job-schema.ts'
import { accepts, type JsonSchema } from '../support/json-schema.ts'
import { readPage, readPages, root, shownFiles, tableBelow } from '../support/markdown.ts'
import { renderRouteSchema } from '../support/route-schema.ts'
import { jobRows, middlewareRows, routeRows } from '../support/schema-rows.ts'
import { renderMiddlewareSchema } from '../support/schema.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const routeSchema = JSON.parse(renderRouteSchema()) as JsonSchema
const jobSchema = JSON.parse(renderJobSchema()) as JsonSchema
const middlewareSchema = JSON.parse(renderMiddlewareSchema()) as JsonSchema
const rules = { root: '/srv/app', middlewareKnown: () => true }
const short = (content: unknown): string => JSON.stringify(content).slice(0, 200)

/** The files of this project, of its documents and of `init` whose path matches, by where they are. */
function filesLike(path: RegExp): [where: string, content: unknown][] {
  const folder = join(temporaryFolder(), 'app')
  const made = initApplication(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')] as const)
  const own = readdirSync(new URL('routes/', root), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.json'))
    .map((name) => [`routes/${name}`, readFileSync(new URL(`routes/${name}`, root), 'utf8')] as const)
  const shown = readPages().flatMap((page) => Object.entries(shownFiles(page)).map(([name, text]) => [`${page.file} ${name}`, text] as const))
  return [...made, ...own, ...shown]
    .filter(([where]) => path.test(where.split(' ').at(-1) ?? ''))
    .map(([where, text]) => [where, JSON.parse(text)])
}

describe('docs/schemas/routes.schema.json', () => {
  const folder = temporaryFolder()
  const problemsOf = (content: unknown): readonly unknown[] => {
    writeFiles(folder, { 'a.json': JSON.stringify(content) })
    const { problems, warnings } = readRouteFiles(folder, rules)
    return [...problems, ...warnings]
  }

  it('is current: npm run docs writes it', () => {
    assertCurrent('schemas/routes.schema.json', renderRouteSchema())
  })

  it('accepts and refuses files as the server does', () => {
    for (const [content, isValid] of routeRows) {
      assert.equal(problemsOf(content).length === 0, isValid, `the server: ${short(content)}`)
      assert.equal(accepts(routeSchema, content), isValid, `the schema: ${short(content)}`)
    }
  })

  it('accepts any record that the server reads without a warning', () => {
    const seeded = new Seeded(16)
    let read = 0
    for (let round = 0; round < 5_000; round += 1) {
      const value = { name: 'a', url: '/a', action: 'a.js', ...(anyRecord(seeded) as object) }
      const parsed = parseRecord(value, rules)
      if (!('record' in parsed) || parsed.warnings.length > 0) continue
      assert.ok(accepts(routeSchema, [value]), short(value))
      read += 1
    }
    assert.ok(read > 50, String(read))
  })

  it('accepts the route files of the demo, the documents and init, and those that servers have written', () => {
    const found = filesLike(/^routes\/[\w-]+\.json$/)
    assert.ok(found.length > 30, String(found.length))
    const written = readdirSync(new URL('test/upgrade/', root)).filter((name) => /^\d/.test(name))
    for (const name of written) found.push([name, JSON.parse(readFileSync(new URL(`test/upgrade/${name}/admin.json`, root), 'utf8'))])
    for (const [where, content] of found) assert.ok(accepts(routeSchema, content), where)
  })
})

describe('docs/schemas/jobs.schema.json', () => {
  const folder = temporaryFolder()
  const problemsOf = (content: unknown): readonly unknown[] => {
    writeFiles(folder, { 'a.json': JSON.stringify(content) })
    const { problems, warnings } = new JobFiles(folder, '/srv/app')
    return [...problems, ...warnings]
  }

  it('is current: npm run docs writes it', () => {
    assertCurrent('schemas/jobs.schema.json', renderJobSchema())
  })

  it('accepts and refuses files as the server does', () => {
    for (const [content, isValid] of jobRows) {
      assert.equal(problemsOf(content).length === 0, isValid, `the server: ${short(content)}`)
      assert.equal(accepts(jobSchema, content), isValid, `the schema: ${short(content)}`)
    }
  })

  it('has the ranges, defaults and meanings that docs/jobs.md has, of the table of the reader', () => {
    const rows = new Map(tableBelow(readPage('docs/jobs.md'), '## Job files').map(([name, meaning]) => [name, meaning]))
    for (const [name, row] of Object.entries<Row>(jobTable)) assert.equal(rows.get(`\`${name}\``), meaningOf(row), name)
  })

  it('accepts the job files of the documents', () => {
    const found = filesLike(/^jobs\/[\w-]+\.json$/)
    assert.ok(found.length > 4, String(found.length))
    for (const [where, content] of found) assert.ok(accepts(jobSchema, content), where)
  })
})

describe('docs/schemas/middleware.schema.json', () => {
  const folder = temporaryFolder()
  const groups: readonly BuiltInGroup[] = [...builtInGroups(), createMessageGroup()]

  /** Whether the server reads the configuration and the settings of the groups, without a warning. */
  async function isRead(content: unknown): Promise<boolean> {
    writeFiles(folder, { 'config.json': JSON.stringify(content) })
    try {
      const { setup, warnings } = readMiddlewareConfig(folder, groups.map(({ name }) => name))
      const all = [...warnings]
      for (const group of groups) {
        const given = setup[group.name]
        if (given === undefined) continue
        await group.load?.()
        const prepared = group.prepare(given)
        prepared.abandon?.()
        all.push(...prepared.warnings)
      }
      return all.length === 0
    } catch (error) {
      if (error instanceof SettingsError || error instanceof MiddlewareError) return false
      throw error
    }
  }

  it('is current: npm run docs writes it', () => {
    assertCurrent('schemas/middleware.schema.json', renderMiddlewareSchema())
  })

  it('accepts and refuses files as the server does', async () => {
    for (const [content, isValid] of middlewareRows) {
      assert.equal(await isRead(content), isValid, `the server: ${short(content)}`)
      assert.equal(accepts(middlewareSchema, content), isValid, `the schema: ${short(content)}`)
    }
  })

  it('accepts the values of every setting that the server accepts, and refuses those of a wrong type or size', () => {
    const values = [true, 0, -1, 1, 1.5, 5e12, 'auto', 'text', '', 'a, b', [], ['x'], [1], null, {}]
    for (const { name, table = {} } of groups) {
      for (const [key, row] of Object.entries(table)) {
        for (const value of [...values, row.default]) {
          const settings = { [key]: value }
          const nested = name === 'limit' ? { rule: settings } : name === 'validate' ? { messages: settings } : settings
          const reading = readValue(row, value)
          const isAccepted = accepts(middlewareSchema, { setup: { [name]: nested } })
          if ('value' in reading || !('check' in row)) assert.equal(isAccepted, 'value' in reading, short([name, settings]))
        }
      }
    }
  })

  it('accepts the middleware configurations of the demo, the documents and init', () => {
    const found = filesLike(/middleware\/config\.json$/)
    assert.ok(found.length > 20, String(found.length))
    for (const [where, content] of found) assert.ok(accepts(middlewareSchema, content), where)
  })
})
