import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

test('neither the watch nor the history keeps a process alive', async () => {
  const program = `
    import { createEventLoopWatch } from ${JSON.stringify(targetUrl('event-loop'))}
    import { createHistory } from ${JSON.stringify(targetUrl('history'))}
    createEventLoopWatch()
    createHistory({ sample: () => ({}) })`
  const loader = 'typescript' in process.features ? [] : ['--import', 'tsx']
  const args = [...loader, '--input-type=module', '--eval', program]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

function targetUrl(name: string): string {
  const dist = process.env.SVC_TEST_TARGET === 'dist'
  const target = dist ? `../../dist/metrics/${name}.js` : `../../lib/metrics/${name}.ts`
  return pathToFileURL(join(import.meta.dirname, target)).href
}
