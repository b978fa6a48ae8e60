// lib/svc.d.ts matches the code: its declarations exist and fit, and it lacks nothing public.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import type * as svc from 'svc'
import type { App, AppOptions } from '../../lib/app.ts'
import type { Setup } from '../../lib/modules/middleware-host.ts'
import type { ReloadError } from '../../lib/control/commands.ts'
import type { MiddlewareError } from '../../lib/modules/middleware-config.ts'
import type { Middleware, Next } from '../../lib/chain/compose.ts'
import type { ConfigError } from '../../lib/config/load.ts'
import type { Channel } from '../../lib/events/channel.ts'
import type { Queue } from '../../lib/events/queue.ts'
import type { FlashBag } from '../../lib/flash/bag.ts'
import type { CoreContext } from '../../lib/http/context.ts'
import type { CookieAttributes } from '../../lib/http/cookie.ts'
import type { HttpError } from '../../lib/http/errors.ts'
import type { Form, FormFile } from '../../lib/http/form.ts'
import * as entry from '../../lib/index.ts'
import type { RouteRecord } from '../../lib/routing/route.ts'
import type { Session } from '../../lib/session/session.ts'
import type { WebSocketConnection } from '../../lib/websocket/connection.ts'
import { startApplication } from '../support/application.ts'
import { contextRows, isSignature } from '../support/context-page.ts'
import { codeOf, readPage, tableBelow } from '../support/markdown.ts'
import { request } from '../support/request.ts'

/** Compiles only if the server matches the declarations. */
type Fits<Declared, Actual extends Declared> = [Declared, Actual]
/** Whether each fits the other; `Yes` compiles only if so. */
type Same<Declared, Actual> = [Declared, Actual] extends [Actual, Declared] ? true : false
type Yes<Answer extends true> = Answer
/** The members, with `unknown` for a reply, whose type is private. */
type AnyReply<Members> = {
  [Name in keyof Members]: Name extends 'reply' ? unknown : Members[Name] extends (...args: infer Args) => svc.Reply ? (...args: Args) => unknown : Members[Name]
}
/** `get` has overloads by the type of its fallback, `route` always exists for an application. */
type CoreNames = Exclude<keyof svc.Context & keyof CoreContext, 'route'>

export type Held = [
  Fits<AnyReply<Pick<svc.Context, CoreNames>>, CoreContext>,
  Fits<Pick<svc.Context, 'fail'>, CoreContext>,
  Fits<svc.Context['route'], NonNullable<CoreContext['route']>>,
  Fits<Omit<svc.Session, 'get'>, Session>,
  Fits<Omit<svc.FlashBag, 'get'>, FlashBag>,
  Fits<svc.Channel, Channel>,
  Fits<svc.Queue, Queue>,
  Fits<svc.WebSocketConnection, WebSocketConnection>,
  Fits<svc.HttpError, HttpError>,
  Fits<ConstructorParameters<typeof HttpError>, ConstructorParameters<typeof svc.HttpError>>,
  Fits<Pick<svc.ConfigError, 'problems'>, ConfigError>,
  Fits<Pick<svc.MiddlewareError, 'file'>, MiddlewareError>,
  Fits<Pick<svc.ReloadError, 'problems'>, ReloadError>,
  Fits<svc.App, App>,
  Fits<AppOptions, svc.AppOptions>,
  Yes<Same<svc.Form, Omit<Form, 'valuesOf'>>>,
  Yes<Same<svc.FormFile, FormFile>>,
  Yes<Same<svc.CookieAttributes, CookieAttributes>>,
  Yes<Same<svc.RouteRecord, RouteRecord>>,
  Yes<Same<svc.Next, Next>>,
  Yes<Same<ReturnType<svc.Setup>, ReturnType<Setup<svc.SetupApp>>>>,
  Fits<ReturnType<svc.Middleware>, ReturnType<Middleware>>,
]

/** The module `svc`; that of page scripts follows it. */
const [text = ''] = readFileSync(new URL('../../lib/svc.d.ts', import.meta.url), 'utf8').split("\n// The browser's half")

/** The members of an interface of lib/svc.d.ts, each once, sorted. */
function membersOf(name: string): string[] {
  const [, body = ''] = new RegExp(`^  (?:export )?interface ${name}\\b[^{]*\\{\\n([^]*?)^  \\}$`, 'm').exec(text) ?? []
  return [...new Set([...body.matchAll(/^    (?:readonly )?(\w+)[?(<:]/gm)].map(([, member = '']) => member))].sort()
}

/** Returns the entries of a table in the documents, sorted. */
function listed(page: string, heading: string): string[] {
  // Of the page of the context, those with a type are members of the context itself.
  const rows = tableBelow(readPage(page), heading).filter(([cell = '']) => !isSignature(cell))
  const cells = rows.map(([cell = '']) => cell).filter((cell) => cell.startsWith('`'))
  return [...new Set(cells.flatMap((cell) => [...cell.matchAll(/`(\w+)/g)].map(([, name = '']) => name)))].sort()
}

const context = membersOf('RequestContext')

describe('lib/svc.d.ts', () => {
  it('declares the values that the entry exports', () => {
    const values = [...text.matchAll(/^  export (?:function|class|const) (\w+)/gm)].map(([, name]) => name)
    assert.deepEqual(values.sort(), Object.keys(entry).sort())
    const [listed = ''] = /The values are [^]*?\. /.exec(readPage('docs/typescript.md').prose) ?? []
    assert.deepEqual(codeOf(listed).sort(), Object.keys(entry).sort())
  })

  it('needs no other file', () => {
    assert.deepEqual(text.match(/^\s*(?:import|\/\/\/).*| from '.*|\bimport\((?!'node:).*/gm), null)
  })

  it('has the documented members of the context, the session, flash bags, forms, setup, files, jobs, WebSockets and servers, and no other', () => {
    const page = 'docs/context.md'
    assert.deepEqual(context, contextRows(readPage(page)).map(({ name }) => name).sort())
    assert.deepEqual(membersOf('Session'), listed(page, '## Sessions'))
    assert.deepEqual(membersOf('FlashBag'), listed(page, '## Flash messages'))
    assert.deepEqual(membersOf('Form'), listed(page, '## The body'))
    assert.deepEqual(membersOf('SetupApp'), listed('docs/routes-and-actions.md', '## Middleware'))
    assert.deepEqual(membersOf('FileOptions'), listed('docs/routes-and-actions.md', '### Files'))
    assert.deepEqual(membersOf('EnqueueOptions'), listed('docs/jobs.md', '## Enqueue a job'))
    const shared = ['settings', 'url', 'channel', 'queue', 'enqueue'] // Those of `app`, in the same row.
    assert.deepEqual([...membersOf('JobContext'), ...shared].sort(), listed('docs/jobs.md', '## The action'))
    const ofServer = [...membersOf('App'), ...membersOf('AppOptions'), 'channel', 'queue', 'logger'].sort()
    assert.deepEqual(ofServer, listed('docs/testing.md', '## A server in a program of your own').filter((name) => ofServer.includes(name)))
    const sockets = listed('docs/streaming.md', '## WebSockets')
    for (const name of [...membersOf('WebSocketConnection'), ...membersOf('WebSocketHandlers')]) assert.ok(sockets.includes(name), name)
  })

  it('has every member that features add to the context, and none that a request lacks', async (t) => {
    const { url } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/', method: 'POST', action: 'a.mjs', middleware: 'SVC_MwSession' }],
      'a.mjs': `export default async (ctx) => {
        const added = Object.getOwnPropertyNames(Object.getPrototypeOf(ctx))
        const names = await ctx.readJson()
        return { added, kinds: names.map((name) => name in ctx && typeof ctx[name]) }
      }`,
    })
    const body = JSON.stringify(context)
    const { added, kinds } = (await request(url, { method: 'POST', body })).json() as { added: string[]; kinds: unknown[] }
    const missing = added.filter((name) => !context.includes(name))
    assert.deepEqual(missing.sort(), ['constructor', 'services'])
    for (const [at, name] of context.entries()) {
      const isFunction = new RegExp(`readonly ${name}: (?:[(<]|Logger\\b|FieldsBuilder\\b)`).test(text)
      assert.equal(kinds[at] === 'function', isFunction, name)
      assert.ok(kinds[at] !== false, name)
    }
  })
})
