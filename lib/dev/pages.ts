/**
 * Self-refreshing pages in `dev`: pages rendered by views, and error pages, get a script. It follows a stream that
 * reports each change and each refused reload.
 *
 * The script and the stream are answered before the server sees the request, so they take no worker and appear in no
 * metric and no log. Pages have no version: the stream sends the age of the last change, and the script reloads a page
 * whose navigation began earlier. If only style sheets have changed, it loads these again, and the page stays.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import type { Command } from '../control/commands.ts'
import type { ServingParts } from '../composition/serving.ts'
import type { RequestServer } from '../core/server.ts'
import type { CoreContext } from '../http/context.ts'
import { builtInPage, type PageForError } from '../http/error-reply.ts'
import type { ContextClass } from '../http/features.ts'
import { createHostCheck, isLoopbackHost } from '../http/host.ts'
import { BodyReply, type Reply } from '../http/reply.ts'
import type { ViewMembers } from '../views/feature.ts'
import { allowScript } from './policy.ts'

/** Serves requests, or passes them on. */
type Handle = RequestServer['handle']

/** An empty document, or one that begins as a whole page. */
const isUnfinished = /^\s*(?:$|<!doctype\b|<html\b)/i
const policyField = 'Content-Security-Policy'
const eventHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
}
const scriptHeaders = {
  'Content-Type': 'text/javascript; charset=utf-8',
  'Cache-Control': 'no-store',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
}

/** The open pages of one process. */
export class DevPages {
  readonly #script = readFileSync(new URL('svc-dev.js', import.meta.url))
  readonly #isServed: (host: string) => boolean
  readonly #viewReplies = new WeakSet<Reply>()
  readonly #streams = new Set<ServerResponse>()
  /** By `performance.now()`; the start counts as a change, so that pages refresh after a restart. */
  #changedAtMs = performance.now()
  #styledAtMs = this.#changedAtMs
  #problems: readonly string[] = []
  #isStopped = false

  /** @param allowedHosts `server.allowed_hosts`; without any, only names of this machine get the script */
  constructor(allowedHosts: readonly string[]) {
    this.#isServed = allowedHosts.length === 0 ? isLoopbackHost : createHostCheck(allowedHosts)
  }

  /** Notifies open pages, and those opened later. */
  refresh({ change, problems }: Command<'pages.refresh'>): void {
    const nowMs = performance.now()
    this.#problems = problems
    if (change === 'page') this.#changedAtMs = nowMs
    if (change === 'styles') this.#styledAtMs = nowMs
    const message = this.#messageAt(nowMs)
    for (const response of this.#streams) response.write(message)
  }

  /** Ends the streams. */
  stop(): void {
    this.#isStopped = true
    for (const response of this.#streams) response.end()
  }

  /** Adds the script to pages, and answers requests for the script and the stream. */
  wrap({
    ContextClass,
    pageForError,
    hides,
  }: ServingParts): Pick<ServingParts, 'ContextClass' | 'pageForError' | 'wrapHandle'> {
    return {
      ContextClass: this.#contextClass(ContextClass),
      pageForError: this.#pageForError(pageForError),
      wrapHandle: this.#wrapHandle(ContextClass, hides),
    }
  }

  /** Answers requests for the script and the stream before `next` sees them. */
  #wrapHandle(Context: ContextClass, hides: ServingParts['hides']): (next: Handle) => Handle {
    return (next) => (request, response, expect) => {
      if (request.url?.includes('/svc-dev') !== true || request.method !== 'GET' || this.#isStopped) {
        return next(request, response, expect)
      }
      const ctx = new Context(request, response)
      const { path } = ctx
      const isServed = this.#isServed(ctx.host) && hides?.(ctx) !== true
      if (path === '/svc-dev.js' && isServed) response.writeHead(200, scriptHeaders).end(this.#script)
      else if (path === '/svc-dev-events' && isServed) this.#follow(response)
      else next(request, response, expect)
    }
  }

  /** Derives the context class, which adds the script after the route's chain. */
  #contextClass(Base: ContextClass): ContextClass {
    const pages = this
    const Context = class extends Base {
      override matched(match: Parameters<CoreContext['matched']>[0]): void {
        super.matched(match)
        const { system, target } = match.route
        if (system) return
        this.run = (ctx) => {
          const outcome = target(ctx)
          const finish = (reply: Reply): Reply => pages.#withScript(ctx, reply)
          return outcome instanceof Promise ? outcome.then(finish) : finish(outcome)
        }
      }
    }
    // A feature adds this member to `Base`, whose type does not include it.
    Object.defineProperty(Context.prototype, 'view', {
      get(this: CoreContext): ViewMembers['view'] {
        const view = Reflect.get(Base.prototype, 'view', this) as ViewMembers['view']
        return (...args) => {
          const reply = view(...args)
          pages.#viewReplies.add(reply)
          return reply
        }
      },
    })
    return Context
  }

  /** Adds the script to error pages, including the built-in ones: they refresh when the mistake is fixed. */
  #pageForError(make: ServingParts['pageForError']): PageForError {
    return (ctx, error, detail) => {
      const page = make?.(ctx, error, detail) ?? builtInPage(ctx, error, detail)
      const set = page.policy === undefined ? policiesOf(ctx) : [page.policy]
      const added = ctx.isOfPanel ? undefined : this.#add(ctx, page.html, set)
      if (added === undefined) return page
      if (page.policy !== undefined) return { html: added.html, policy: added.policies.join(', ') }
      if (set.length > 0) ctx.outgoing.set(policyField, added.policies)
      return { html: added.html }
    }
  }

  #follow(response: ServerResponse): void {
    response.writeHead(200, eventHeaders)
    response.write(this.#messageAt(performance.now()))
    this.#streams.add(response)
    response.on('close', () => this.#streams.delete(response))
  }

  #messageAt(nowMs: number): string {
    const [changedMsAgo, styledMsAgo] = [nowMs - this.#changedAtMs, nowMs - this.#styledAtMs]
    const news = { changedMsAgo, styledMsAgo, problems: this.#problems }
    return `data: ${JSON.stringify(news)}\n\n`
  }

  #withScript(ctx: CoreContext, reply: Reply): Reply {
    if (!(reply instanceof BodyReply) || !this.#viewReplies.has(reply)) return reply
    const type = ctx.outgoingIfAny?.get('Content-Type') ?? reply.type
    const set = policiesOf(ctx)
    const added = /^text\/html\b/i.test(type) ? this.#add(ctx, reply.body as string, set) : undefined
    if (added === undefined) return reply
    if (set.length > 0) ctx.outgoing.set(policyField, added.policies)
    // Otherwise the browser would combine the nonce of a cached page with the policy of a later response.
    for (const name of ['ETag', 'Last-Modified']) ctx.outgoingIfAny?.delete(name)
    return new BodyReply(reply.type, added.html)
  }

  /** @returns undefined for a page without the script */
  #add(ctx: CoreContext, html: string, policies: readonly string[]) {
    // A view that is being saved may be empty or incomplete: without the script its page would never refresh.
    const end = isUnfinished.test(html) ? html.length : undefined
    const at = [...html.matchAll(/<\/body\s*>/gi)].at(-1)?.index ?? end
    if (at === undefined || !isNavigation(ctx) || !this.#isServed(ctx.host)) return undefined
    const { fields, nonce } = allowScript(policies, () => randomBytes(16).toString('base64url'))
    const attribute = nonce === undefined ? '' : ` nonce="${nonce}"`
    const tag = `<script type="module" src="${ctx.prefix}/svc-dev.js"${attribute}></script>\n`
    return { html: html.slice(0, at) + tag + html.slice(at), policies: fields }
  }
}

/**
 * Returns whether a person opens a page: by the browser's Fetch Metadata, or in its absence, if the request names HTML
 * in Accept and does not come from a script.
 */
function isNavigation(ctx: CoreContext): boolean {
  const mode = ctx.header('sec-fetch-mode')
  const destination = ctx.header('sec-fetch-dest')
  if (mode !== undefined || destination !== undefined) {
    return (mode ?? 'navigate') === 'navigate' && (destination ?? 'document') === 'document'
  }
  const isScript = ctx.header('x-requested-with')?.toLowerCase() === 'xmlhttprequest'
  return !isScript && /\btext\/html\b/i.test(ctx.header('accept') ?? '')
}

function policiesOf(ctx: CoreContext): string[] {
  const flat = ctx.outgoingIfAny?.flat ?? []
  return flat.filter((_, at) => at % 2 === 1 && flat[at - 1]?.toLowerCase() === policyField.toLowerCase())
}
