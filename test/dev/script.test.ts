/** How the script in pages of `dev` handles a delayed message, by a clock of the test. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const script = readFileSync(new URL('../../lib/dev/svc-dev.js', import.meta.url), 'utf8')
  .replaceAll('import.meta.url', '"http://127.0.0.1/svc-dev.js"')

for (const [what, changedMsAgo, did] of [
  ['reloads a page that was older when it asked', 50, ['asks', 'reloads']],
  ['keeps a page that was opened after the change', 1000, ['asks']],
  ['asks again when the change lies between its question and the answer', 500, ['asks', 'asks']],
] as const) {
  test(what, () => assert.deepEqual(follow({ askedAtMs: 100, answeredAtMs: 900, changedMsAgo }), did))
}

function follow({ askedAtMs, answeredAtMs, changedMsAgo }: Record<'askedAtMs' | 'answeredAtMs' | 'changedMsAgo', number>): string[] {
  const did: string[] = []
  const sources: Source[] = []
  let nowMs = askedAtMs
  class Source {
    onmessage?: (event: { data: string }) => void
    constructor() {
      sources.push(this)
      did.push('asks')
    }
    close(): void {}
  }
  const globals = {
    EventSource: Source,
    document: { hidden: false, addEventListener: () => {} },
    location: { reload: () => did.push('reloads') },
    performance: { now: () => nowMs },
    setTimeout: (again: () => void) => again(),
  }
  new Function(...Object.keys(globals), script)(...Object.values(globals))
  nowMs = answeredAtMs
  sources[0]?.onmessage?.({ data: JSON.stringify({ changedMsAgo, styledMsAgo: 1000, problems: [] }) })
  return did
}
