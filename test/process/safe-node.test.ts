import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nodeWarnings } from '../../lib/process/safe-node.ts'

describe('the warning about Node', () => {
  it('names versions with known vulnerabilities, and those that get no fixes', () => {
    const old = (version: string, safe: string) =>
      `Node ${version} has known vulnerabilities: run Node ${safe} or later (as known on 2026-10-21)`
    const ended = (version: string) =>
      `Node ${version} gets no security fixes from nodejs.org any more: run Node 22.23.4, 24.22.1 or 26.12.1, or later (as known on 2026-10-21)`
    const rows: readonly (readonly [version: string, warning: string | undefined])[] = [
      ['22.23.4', undefined],
      ['22.23.5', undefined],
      ['22.24.0', undefined],
      ['22.23.3', old('22.23.3', '22.23.4')],
      ['22.9.9', old('22.9.9', '22.23.4')],
      ['24.22.1', undefined],
      ['24.22.1-nightly', undefined],
      ['24.22.0', old('24.22.0', '24.22.1')],
      ['24.9.5', old('24.9.5', '24.22.1')],
      ['26.12.1', undefined],
      ['26.0.0', old('26.0.0', '26.12.1')],
      ['20.20.2', ended('20.20.2')],
      ['25.9.0', ended('25.9.0')],
      ['27.0.0', undefined],
    ]
    for (const [version, warning] of rows) {
      assert.deepEqual(nodeWarnings(version), warning === undefined ? [] : [warning])
    }
  })
})
