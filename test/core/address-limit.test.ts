import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAddressLimit } from '../../lib/core/address-limit.ts'

const rows: readonly (readonly [what: string, first: string, second: string, together: boolean])[] = [
  ['one IPv4 address', '192.0.2.1', '192.0.2.1', true],
  ['one IPv4 address, over an IPv6 socket too', '192.0.2.1', '::ffff:192.0.2.1', true],
  ['two IPv4 addresses', '192.0.2.1', '192.0.2.2', false],
  ['two IPv4 addresses over IPv6 sockets', '::ffff:192.0.2.1', '::ffff:192.0.2.2', false],
  ['two IPv6 addresses of one /64', '2001:db8:1:2::1', '2001:db8:1:2:ffff::9', true],
  ['two IPv6 addresses of neighbouring networks', '2001:db8:1:2::1', '2001:db8:1:3::1', false],
]

for (const [what, first, second, together] of rows) {
  test(`counts ${what} ${together ? 'together' : 'separately'}`, () => {
    const limit = createAddressLimit(1)
    let refused = 0
    const leave = limit.enter(first, () => (refused += 1))
    limit.enter(second, () => (refused += 1))
    assert.equal(refused, together ? 1 : 0)
    leave()
    limit.enter(first, () => (refused += 1))
    assert.equal(refused, together ? 1 : 0)
  })
}
