// The alert rules and the dashboard of docs/deploy, by Prometheus' own tools: Debian's package `prometheus`.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { deployFolder, expressionsOfDashboard } from '../docs/deploy-metrics.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Runs promtool, which must have no complaint. Returns its output. */
function promtool(...args: string[]): string {
  const { status, error, stdout, stderr } = spawnSync('promtool', args, { cwd: deployFolder, encoding: 'utf8' })
  if (error !== undefined) {
    assert.fail(`Cannot run promtool: ${error.message}. Install it: apt-get install --no-install-recommends prometheus`)
  }
  assert.equal(status, 0, stdout + stderr)
  return stdout + stderr
}

test('the alert rules are valid', () => {
  assert.match(promtool('check', 'rules', 'svc.rules.yml'), /SUCCESS: \d+ rules found/)
})

test('each alert alone fires by its fault, and ends after it', () => {
  assert.match(promtool('test', 'rules', 'svc.rules.test.yml'), /SUCCESS/)
  const alertsIn = (file: string, pattern: RegExp): Set<string | undefined> =>
    new Set([...readFileSync(join(deployFolder, file), 'utf8').matchAll(pattern)].map(([, name]) => name))
  assert.deepEqual(alertsIn('svc.rules.test.yml', /alertname="(\w+)"/g), alertsIn('svc.rules.yml', /- alert: (\w+)/g))
})

test('the queries of the dashboard are valid', () => {
  const rules = expressionsOfDashboard().map((query, at) => ({ record: `query:${at}`, expr: query }))
  assert.ok(rules.length > 30)
  const file = join(temporaryFolder(), 'rules.yml')
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] })) // JSON is YAML.
  promtool('check', 'rules', file)
})
