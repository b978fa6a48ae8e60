import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasToken } from '../../lib/base/token.ts'

const rows: readonly (readonly [field: string | undefined, named: boolean])[] = [
  ['websocket', true],
  ['WEBSOCKET', true],
  ['h2c, websocket', true],
  ['h2c ,\twebsocket , x', true],
  [',websocket,', true],
  ['h2c', false],
  ['', false],
  [undefined, false],
  ['websockets, xwebsocket', false],
  ['websocket/13', false],
  ['h2c websocket', false],
]

for (const [field, named] of rows) {
  test(`${JSON.stringify(field)} ${named ? 'contains' : 'does not contain'} websocket`, () => {
    assert.equal(hasToken(field, 'websocket'), named)
  })
}
