import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { testKey, writeFiles } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const quiet = { 'server.port': 0, 'log.console': false, app_key: testKey }

describe('an embedded server', () => {
  it('lets the process exit on its own after stop and closeLogs', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, {
      'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs', middleware: 'm' }],
      'a.mjs': "export default () => 'x'",
      'routes/middleware/config.json': { load: ['m.mjs'] },
      'routes/middleware/m.mjs': `export default (ctx, next) => next()
        export const setup = () => { const timer = setInterval(() => {}, 1000); return () => clearInterval(timer) }`,
    })
    const target = new URL('../../lib/index.ts', import.meta.url).href
    writeFileSync(
      join(folder, 'embed.mts'),
      `const { createApp } = await import(${JSON.stringify(target)})
      const app = createApp(${JSON.stringify({ folder, config: { ...quiet, 'server.drain_delay_s': 1 } })})
      const { url } = await app.start()
      console.log(await (await fetch(url)).text())
      await app.control.apply({ type: 'routes.reload' })
      await app.stop()
      app.closeLogs()
      console.log('done')`,
    )
    const loaders = process.execArgv.filter((argument) => !argument.startsWith('--test'))
    const child = spawn(process.execPath, [...loaders, join(folder, 'embed.mts')])
    const text: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => text.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => text.push(chunk))
    t.after(() => child.kill('SIGKILL'))
    const [status] = (await once(child, 'close')) as [number]
    assert.deepEqual([Buffer.concat(text).toString(), status], ['x\ndone\n', 0])
  })
})
