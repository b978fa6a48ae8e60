import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { allLines, logConfig } from './fixture.ts'

test('keeps running when the console is no longer read', async () => {
  const folder = temporaryFolder()
  const target = process.env.SVC_TEST_TARGET === 'dist' ? '../../dist/log/logger.js' : '../../lib/log/logger.ts'
  const config = logConfig({ 'log.console': true })
  const program = `
    import { Logger } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, target)).href)}
    const logger = new Logger(${JSON.stringify(config)}, ${JSON.stringify(folder)})
    process.on('exit', () => logger.close())
    logger.module('app')('first')
    process.stdin.once('data', () => {
      for (let number = 0; number < 3; number += 1) setImmediate(() => logger.module('app')('unread ' + number))
      process.stdin.destroy()
    })`
  const loader = 'typescript' in process.features ? [] : ['--import', 'tsx']
  const args = [...loader, '--input-type=module', '--eval', program]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  child.stdout.destroy()
  await once(child.stdout, 'close')
  child.stdin.end('go')
  assert.deepEqual(await once(child, 'exit'), [0, null])
  assert.equal(allLines(folder).filter((line) => line.includes('unread')).length, 3)
})
