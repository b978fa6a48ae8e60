import assert from 'node:assert/strict'
import { Session, type Debugger, type InspectorNotification } from 'node:inspector'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createApp } from './app.ts'
import { main } from '../../lib/cli/main.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const target = process.env['SVC_TEST_TARGET'] ?? 'lib'

test('the tests run the requested target, and nothing of the other', () => {
  const folders = new Set(loadedFiles().map((file) => file.slice(root.length).split('/')[0]))
  assert.equal(typeof createApp, 'function')
  assert.equal(typeof main, 'function')
  assert.deepEqual(folders.has('lib'), target === 'lib')
  assert.deepEqual(folders.has('dist'), target === 'dist')
})

/** The files of this checkout whose code this process holds, as the debugger of Node sees them. */
function loadedFiles(): string[] {
  const urls: string[] = []
  const session = new Session()
  session.connect()
  session.on('Debugger.scriptParsed', ({ params }: InspectorNotification<Debugger.ScriptParsedEventDataType>) => {
    urls.push(params.url)
  })
  session.post('Debugger.enable')
  session.disconnect()
  const files = urls.map((url) => (url.startsWith('file:') ? fileURLToPath(url) : url))
  return files.filter((file) => file.startsWith(root))
}
