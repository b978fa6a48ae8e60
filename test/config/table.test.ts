import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { renderConfiguration } from '../support/documentation.ts'
import { groupsOf } from '../../lib/config/assemble.ts'
import { loadConfig, parseConfig } from '../../lib/config/load.ts'
import { configTable, fileKeys } from '../../lib/config/table.ts'
import type { Config } from '../../lib/config/table.ts'
import { readValue } from '../../lib/base/value.ts'
import { traceModules } from '../../lib/log/trace.ts'

const shipped = new URL('../../svc.json', import.meta.url)

/** The keys of the shipped file that do not have their default. */
const exceptions: Partial<Config> = { 'paths.public': 'routes/public' }

test('every default is a value that its row lets through', () => {
  for (const [fileKey, key] of fileKeys()) {
    const row = configTable[key]
    assert.deepEqual(readValue(row, row.default), { value: row.default }, fileKey)
  }
})

test('no key is also a group, and no file key occurs twice', () => {
  const keys = fileKeys().map(([key]) => key)
  assert.equal(new Set(keys).size, keys.length)
  const groups = new Set(keys.flatMap(groupsOf))
  assert.deepEqual(keys.filter((key) => groups.has(key)), [])
})

test('the trace row has a switch for every module of the log', () => {
  assert.deepEqual(Object.keys(parseConfig({}, '.').config.trace), [...traceModules])
})

test('the shipped svc.json lists every key in the order of the table, with the defaults but for the exceptions', () => {
  const listed: string[] = []
  const visit = (object: object, prefix: string): void => {
    for (const [name, value] of Object.entries(object)) {
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) visit(value, `${prefix}${name}.`)
      else listed.push(prefix + name)
    }
  }
  visit(JSON.parse(readFileSync(shipped, 'utf8')), '')
  assert.deepEqual(listed, fileKeys().map(([key]) => key))

  const loaded = loadConfig(shipped.pathname)
  assert.deepEqual(loaded.warnings, [])
  assert.deepEqual(loaded.config, { ...parseConfig({}, '.').config, ...exceptions })
})

test('the documentation refuses a key of a group without a title', () => {
  const table = { 'odd.key': { kind: 'boolean', default: true, meaning: '' } } as const
  assert.throws(() => renderConfiguration(table), { message: 'The documentation has no title for odd.key' })
})

test('docs/configuration.md is current: npm run docs writes it', () => {
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  assert.equal(page, renderConfiguration())
  for (const key of Object.keys(configTable)) assert.ok(page.includes(`| \`${key}\` |`), key)
})
