import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { describe, it } from 'node:test'
import * as svc from '../lib/index.ts'
import type { Action, Config, Context, Form, FormFile, Middleware, Next } from '../lib/index.ts'
import type { Reply, RouteRecord, Setup, SetupApp, Teardown } from '../lib/index.ts'
import { startApplication } from './support/application.ts'
import { readPage, tableBelow } from './support/markdown.ts'
import { request } from './support/request.ts'

describe('the package', () => {
  it('exports what embedding it needs, and nothing else', () => {
    assert.deepEqual(Object.keys(svc).sort(), ['ConfigError', 'HttpError', 'MiddlewareError', 'ReloadError', 'createApp', 'fields'])
  })

  it('has the file that package.json names', () => {
    const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
    assert.equal(exports['.'].default, './dist/index.js')
  })

  it('has types for actions, middleware and setups', () => {
    const action: Action = async (ctx: Context) => {
      const form: Form = await ctx.readForm()
      const file: FormFile | undefined = form.files[0]
      const route: RouteRecord | undefined = ctx.route
      if (file === undefined) return ctx.fail(400, 'no_file', 'Send a file')
      const reply: Reply = ctx.view('a.html', { name: route?.name, size: file.size })
      return reply
    }
    const middleware: Middleware = async (ctx, next: Next) => {
      ctx.state['at'] = ctx.url('home')
      await next()
      ctx.log.info('done')
    }
    const setup: Setup<SetupApp> = ({ config, logger }): Teardown => {
      const port: Config['server.port'] = config['server.port']
      return () => logger('app').info(`bye ${port}`)
    }
    for (const part of [action, middleware, setup]) assert.equal(typeof part, 'function')
  })

  it('has the documented members in the type of the context, and no other', () => {
    const lib = new URL('../lib/', import.meta.url)
    const text = (file: string): string => readFileSync(new URL(file, lib), 'utf8')
    const features = readdirSync(lib, { recursive: true, encoding: 'utf8' }).filter((file) => /(^|[/-])feature\.ts$/.test(file))
    const added = features.flatMap((file) => [...text(file).matchAll(/^export interface (\w+Members) \{$([^]*?)^\}$/gm)])
    const [, extended = ''] = /^export interface Context\s+extends ([\w\s,]+)\{/m.exec(text('application/context.ts')) ?? []
    assert.deepEqual(extended.trim().split(/,\s+/).sort(), ['CoreMembers', ...added.map(([, name]) => name)].sort())
    const [, core = ''] = /^export type CoreMembers = Pick<([^>]+)>$/m.exec(text('http/context.ts')) ?? []
    const ofCore = [...core.matchAll(/'(\w+)'/g)].map(([, name]) => name)
    const ofFeatures = added.flatMap(([, , body = '']) => [...body.matchAll(/^  readonly (\w+):/gm)].map(([, name]) => name))
    const documented = tableBelow(readPage('docs/routes-and-actions.md'), '### Members').map(([cell = '']) => /^`(\w+)/.exec(cell)?.[1])
    assert.deepEqual([...ofCore, ...ofFeatures].sort(), documented.sort())
  })

  it('gives applications the class that the server knows its errors by', async (t) => {
    const target = new URL('../lib/index.ts', import.meta.url).href
    const { url } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs' }],
      'a.mjs': `const { HttpError } = await import(${JSON.stringify(target)})
        export default () => { throw new HttpError(418, 'teapot', 'Short and stout') }`,
    })
    const answer = await request(url, { headers: { accept: 'application/json' } })
    assert.deepEqual([answer.status, answer.json()], [418, { error: 'teapot', detail: 'Short and stout' }])
  })
})
