import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { assertCurrent } from '../support/current.ts'
import { renderConfiguration } from '../support/documentation.ts'
import { sectionsOf } from '../../lib/config/assemble.ts'
import { loadConfig, parseConfig } from '../../lib/config/load.ts'
import { readObject } from '../../lib/config/objects.ts'
import { configKeys, configTable } from '../../lib/config/table.ts'
import type { Config, KeyRow } from '../../lib/config/table.ts'
import { readValue } from '../../lib/base/value.ts'

const shipped = new URL('../../svc.json', import.meta.url)

/** The keys of the shipped file that do not have their default. */
const exceptions: Partial<Config> = { 'paths.public': 'routes/public', 'paths.jobs': 'routes/jobs' }

test('every default is valid by its row', () => {
  for (const key of configKeys) {
    const row: KeyRow = configTable[key]
    const reading = row.kind === 'object' ? readObject(row.default) : readValue(row, row.default)
    assert.deepEqual(reading, { value: row.default }, key)
  }
})

test('no key is also a group', () => {
  const groups = new Set(configKeys.flatMap(sectionsOf))
  assert.deepEqual(configKeys.filter((key) => groups.has(key)), [])
})

test('the shipped svc.json lists every key in the order of the table, with the defaults except for the exceptions', () => {
  const listed: string[] = []
  const visit = (object: object, prefix: string): void => {
    for (const [name, value] of Object.entries(object)) {
      const isGroup = typeof value === 'object' && value !== null && Object.keys(value).length > 0
      if (isGroup && !Array.isArray(value)) visit(value, `${prefix}${name}.`)
      else listed.push(prefix + name)
    }
  }
  visit(JSON.parse(readFileSync(shipped, 'utf8')), '')
  assert.deepEqual(listed, configKeys)

  const loaded = loadConfig(shipped.pathname)
  assert.deepEqual(loaded.warnings, [])
  assert.deepEqual(loaded.config, { ...parseConfig({}, '.').config, ...exceptions })
})

test('the documentation refuses a key of a group without a title', () => {
  const table = { 'odd.key': { kind: 'boolean', default: true, meaning: '' } } as const
  assert.throws(() => renderConfiguration(table), { message: 'The documentation has no title for odd.key' })
})

test('docs/configuration.md is current: npm run docs writes it', () => {
  const page = renderConfiguration()
  assertCurrent('configuration.md', page)
  for (const key of Object.keys(configTable)) {
    assert.match(page, new RegExp(`^(?:\\| |.*, )?\`${key.replaceAll('.', '\\.')}\`(?: \\||,|$)`, 'm'), key)
  }
})
