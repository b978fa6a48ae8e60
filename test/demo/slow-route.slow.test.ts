// The slow route of the demo, while others are served, and in a profile.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBoard } from '../support/board.ts'
import { request } from '../support/request.ts'

interface Profile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string }
    readonly children?: readonly number[]
  }[]
  readonly samples: readonly number[]
}

test('the comparison of the notices serves others meanwhile, and takes most of the time in a profile', async (t) => {
  const { url } = await startBoard(t, { 'app.env': 'dev' })
  const profile = request(`${url}/svc-profile?kind=cpu&seconds=4`)
  let hasEnded = false
  const slow = request(`${url}/alike`).finally(() => (hasEnded = true))
  assert.equal((await request(`${url}/api/notices`)).status, 200)
  assert.equal(hasEnded, false)
  assert.match((await slow).text, /64,620 pairs [^]*<strong>9\d %<\/strong>/)

  const { nodes, samples } = (await profile).json() as Profile
  const within = new Set<number>() // The function, and what it calls: a caller precedes what it calls.
  for (const { id, callFrame: { functionName, url: file }, children = [] } of nodes) {
    if (functionName === 'comparePairs' && file === 'routes/board/alike.js') within.add(id)
    if (within.has(id)) for (const child of children) within.add(child)
  }
  const idle = new Set(nodes.filter(({ callFrame }) => /^\((?:idle|program)\)$/.test(callFrame.functionName)).map(({ id }) => id))
  const busy = samples.filter((sample) => !idle.has(sample))
  const share = busy.filter((sample) => within.has(sample)).length / busy.length
  assert.ok(share > 0.5, `comparePairs takes ${Math.round(share * 100)} % of the time`)
})
