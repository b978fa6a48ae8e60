// The browser's half of live pages, in Chromium over plain HTTP.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { startApplication, type TestApplication } from '../support/application.ts'
import { openPage, type Page } from '../support/browser.ts'
import { until } from '../support/until.ts'

const page = `<!doctype html>
<title>News</title>
<script type="module">
  import { live } from '/svc-live.js'
  window.heard = []
  window.states = []
  const options = Object.fromEntries(new URLSearchParams(location.search))
  for (const name of ['shared', 'remember']) if (name in options) options[name] = options[name] === 'true'
  window.follow = (url, more) => live(url, {
    onEvent: (data, { id }) => heard.push(data),
    onGap: ({ last_id }) => heard.push('gap'),
    onState: (state) => states.push(state),
    ...options,
    ...more,
  })
  window.news = follow('/news')
</script>`
const files = {
  'routes/a.json': [
    { name: 'page', url: '/', method: 'GET', action: 'page.html' },
    { name: 'news', url: '/news', method: 'GET', action: 'news.mjs' },
    { name: 'renewed', url: '/renewed', method: 'GET', action: 'news.mjs@renewed' },
    { name: 'answer', url: '/answer/:status', method: 'GET', action: 'news.mjs@answer' },
  ],
  'page.html': page,
  'news.mjs': `
    export default (ctx) => ctx.live(ctx.channel('news'))
    let asked = 0
    export const renewed = (ctx) => {
      if ((asked += 1) > 3) return ctx.live(ctx.channel('news'))
      return new Response('retry: 2000\\n\\nretry: 0\\n\\n', { headers: { 'Content-Type': 'text/event-stream' } })
    }
    export const answer = (ctx) => {
      if (ctx.params.status === '302') return ctx.redirect('/')
      if (ctx.params.status === 'html') return ctx.html('<p>Sign in</p>')
      ctx.setHeader('Retry-After', '1')
      return ctx.json({}, Number(ctx.params.status))
    }`,
}

const heard = (tab: Page): Promise<unknown[]> => tab.evaluate('heard') as Promise<unknown[]>
const count = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at)

/** Publishes numbers, one per turn of the event loop. */
async function publish({ app }: TestApplication, from: number, to: number): Promise<void> {
  for (const number of count(from, to)) {
    await app.channel('news').publish(number)
    await new Promise(setImmediate)
  }
}

async function start(t: TestContext, query = '', tabs = 1) {
  const first = await openPage(t)
  const server = await startApplication(t, files, { 'app.env': 'dev' })
  const pages = [first]
  while (pages.length < tabs) pages.push(await first.another())
  for (const one of pages) {
    await one.open(`${server.url}/${query}`)
    await until(async () => (await one.evaluate('window.news?.state')) === 'open')
  }
  return { server, pages, first }
}

/** The connections that wait for events. */
const waiting = async ({ url }: TestApplication): Promise<number> => {
  const { pool_rest: pool } = (await (await fetch(`${url}/svc-status`)).json()) as { pool_rest: { sse: number; longpoll: number } }
  return pool.sse + pool.longpoll
}

describe('a live page', () => {
  for (const transport of ['sse', 'poll']) {
    it(`receives each event once, by ${transport}`, async (t) => {
      const { server, first } = await start(t, `?transport=${transport}&since=0`)
      await until(async () => (await heard(first)).length > 0) // Of a cursor from another server it is told.
      assert.deepEqual(await heard(first), ['gap'])
      await publish(server, 1, 100)
      await until(async () => (await heard(first)).length === 101)
      assert.deepEqual(await heard(first), ['gap', ...count(1, 100)])
      assert.equal(await first.evaluate('news.lastId'), await server.app.channel('news').last_id)
      await first.evaluate('news.close()')
      assert.deepEqual(await first.evaluate('[states.at(-1), news.state]'), ['closed', 'closed'])
    })
  }

  it('receives 10,000 events at once, and one of 1 MiB', async (t) => {
    const { server, first } = await start(t)
    for (const number of count(1, 10_000)) void server.app.channel('news').publish(number)
    await server.app.channel('news').publish('x'.repeat(2 ** 20))
    await until(async () => ((await first.evaluate('heard.length')) as number) >= 1)
    await until(async () => (await first.evaluate('heard.at(-1)?.length')) === 2 ** 20)
    const [first_, ...rest] = (await first.evaluate('heard.slice(0, -1)')) as unknown[]
    // The channel keeps a thousand: earlier events that a reader has missed are reported as a gap.
    assert.ok(first_ === 1 || first_ === 'gap')
    assert.deepEqual(rest.slice(1), count(rest[1] as number, 10_000).slice(0, rest.length - 1))
  })

  it('shares one connection with eleven other tabs', async (t) => {
    const { server, pages } = await start(t, '', 12)
    assert.equal(await waiting(server), 1)
    await publish(server, 1, 3)
    for (const one of pages) await until(async () => (await heard(one)).length === 3)
    assert.equal(await waiting(server), 1)
    for (const one of pages) assert.deepEqual(await heard(one), [1, 2, 3])
  })

  it('loses and doubles nothing when the leading tab is killed, and when it is closed', async (t) => {
    const { server, pages } = await start(t, '', 4)
    const [first, second, ...rest] = pages as [Page, Page, Page, Page]
    first.kill()
    await publish(server, 1, 100)
    for (const one of [second, ...rest]) await until(async () => (await heard(one)).length === 100)
    await second.evaluate('news.close()')
    await publish(server, 101, 200)
    for (const one of rest) {
      await until(async () => (await heard(one)).length === 200)
      assert.deepEqual(await heard(one), count(1, 200))
    }
    await until(async () => (await waiting(server)) === 1) // The closed tab's connection ends in its own time.
  })

  it('sends no request when it is ahead of a leading tab that is not connected', async (t) => {
    const { server, pages } = await start(t, '', 2)
    const [first, second] = pages as [Page, Page]
    for (const one of pages) await one.evaluate('news.close()')
    await publish(server, 1, 2)
    const now = await server.app.channel('news').last_id
    await first.evaluate(`{ window.fetch = () => Promise.reject(new Error('away')); window.news = follow('/news', { since: ${now - 1} }) }`)
    await second.evaluate(`{
      window.asked = 0
      const fetch = window.fetch
      window.fetch = (...request) => { asked += 1; return fetch(...request) }
      window.news = follow('/news', { since: ${now} })
    }`)
    await until(async () => (await second.evaluate('news.state')) === 'waiting') // The leading tab has sent it this.
    assert.equal(await second.evaluate('asked'), 0)
    await first.evaluate('news.close()')
    await publish(server, 3, 4)
    await until(async () => (await heard(second)).length === 2)
    assert.deepEqual(await heard(second), [3, 4])
  })

  it('continues in another tab when the leading one is frozen, and in the frozen one when it resumes', async (t) => {
    const { server, pages } = await start(t, '', 3)
    const [first, ...rest] = pages as [Page, Page, Page]
    await first.freeze(true)
    await publish(server, 1, 20)
    for (const one of rest) await until(async () => (await heard(one)).length === 20)
    await until(async () => (await waiting(server)) === 1)
    await first.freeze(false)
    await publish(server, 21, 40)
    for (const one of pages) {
      await until(async () => (await heard(one)).length === 40)
      assert.deepEqual(await heard(one), count(1, 40))
    }
    await until(async () => (await waiting(server)) === 1)
  })

  it('starts another stream at once, and stays open, when the server renews it', async (t) => {
    const { server, first } = await start(t, '?shared=false')
    await first.evaluate('news.close()')
    await until(async () => (await waiting(server)) === 0) // Else the one stream below might still be this one.
    await first.evaluate(`{ window.states.length = 0; window.news = follow('/renewed') }`)
    await until(async () => (await waiting(server)) === 1)
    await publish(server, 1, 1)
    await until(async () => (await heard(first)).length === 1)
    assert.deepEqual(await first.evaluate('states.filter((state) => state !== "closed")'), ['open'])
  })

  for (const query of ['?shared=false', '']) {
    it(`closes its connection when its page is left, and continues when it is shown again${query}`, async (t) => {
      const { server, first } = await start(t, query)
      await publish(server, 1, 1)
      await until(async () => (await heard(first)).length === 1)
      for (const number of count(1, 8)) {
        await first.open(`${server.url}/${query}${query === '' ? '?' : '&'}page=${number}`)
        await until(async () => (await first.evaluate('window.news?.state')) === 'open') // There are six for a host.
      }
      await until(async () => (await waiting(server)) === 1)
      await first.back(8)
      assert.equal(await first.evaluate('location.search'), query)
      await until(async () => (await first.evaluate('window.news?.state')) === 'open')
      await publish(server, 2, 2)
      await until(async () => (await heard(first)).includes(2))
      await until(async () => (await waiting(server)) === 1)
    })
  }

  it('takes the lead from a tab that was silent for too long', async (t) => {
    const { server, pages } = await start(t, '', 2)
    const [first, second] = pages as [Page, Page]
    await first.evaluate('BroadcastChannel.prototype.postMessage = () => {}')
    await second.evaluate('{ const now = performance.now.bind(performance); performance.now = () => now() + 16_000 }')
    await publish(server, 1, 20)
    for (const one of [first, second]) {
      await until(async () => (await heard(one)).length === 20)
      assert.deepEqual(await heard(one), count(1, 20))
    }
    await until(async () => (await waiting(server)) === 1)
  })

  it('gives a later tab only the events that its page does not show yet', async (t) => {
    const { server, first } = await start(t)
    const begun = await server.app.channel('news').last_id
    await publish(server, 1, 5)
    await until(async () => (await heard(first)).length === 5)
    const behind = await first.another()
    await behind.open(`${server.url}/?since=${begun + 3}`)
    await until(async () => (await heard(behind)).length === 2)
    const fresh = await first.another()
    await fresh.open(server.url)
    await until(async () => (await fresh.evaluate('news.lastId')) === begun + 5)
    await publish(server, 6, 7)
    for (const one of [behind, fresh]) await until(async () => (await heard(one)).at(-1) === 7)
    assert.deepEqual([await heard(behind), await heard(fresh)], [[4, 5, 6, 7], [6, 7]])
    assert.equal(await waiting(server), 1)
  })

  it('has a separate connection for another address or user, in another browser, and without locks', async (t) => {
    const { server, first } = await start(t)
    await first.evaluate(`[follow('/news', { as: 'ann' }), follow('/news?x=1'), follow('/news', { shared: false })].length`)
    const other = await openPage(t)
    await other.open(server.url)
    await until(async () => (await waiting(server)) === 5)
    const bare = await first.another()
    await bare.open('about:blank')
    await bare.open(server.url)
    await bare.evaluate(`{
      Object.defineProperty(navigator, 'locks', { value: undefined })
      window.own = follow('/news')
    }`)
    await until(async () => (await waiting(server)) === 6)
  })

  it('keeps its cursor across a reload', async (t) => {
    const { server, first } = await start(t, '?remember=true')
    await publish(server, 1, 3)
    await until(async () => (await heard(first)).length === 3)
    await first.open('about:blank')
    await publish(server, 4, 6)
    await first.open(`${server.url}/?remember=true`)
    await until(async () => (await heard(first)).length === 3)
    assert.deepEqual(await heard(first), [4, 5, 6])
  })

  it('ends at a refusal, a redirect or a page, and reconnects after temporary failures', async (t) => {
    const { first } = await start(t)
    const stateOf = async (status: string): Promise<unknown> => {
      await first.evaluate(`window.one = follow('/answer/${status}', { shared: false })`)
      let state: unknown // It is read once: one that waits tries again soon.
      await until(async () => ['refused', 'waiting'].includes(String((state = await first.evaluate('one.state')))))
      return state
    }
    for (const status of ['401', '403', '404', '302', 'html', '204']) assert.equal(await stateOf(status), 'refused', status)
    for (const status of ['408', '425', '429', '500', '503']) assert.equal(await stateOf(status), 'waiting', status)
  })

  it('pauses when no tab was visible for five minutes, and resumes when one becomes visible', async (t) => {
    const { server, pages } = await start(t, '', 2)
    const hide = (hidden: boolean): string => `{
      Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }`
    for (const one of pages) await one.evaluate(hide(true))
    const [first, second] = pages as [Page, Page]
    await first.evaluate('{ const now = performance.now.bind(performance); performance.now = () => now() + 301_000 }')
    await until(async () => (await first.evaluate('news.state')) === 'hidden')
    await until(async () => (await second.evaluate('news.state')) === 'hidden')
    assert.equal(await waiting(server), 0)
    await publish(server, 1, 2)
    await second.evaluate(hide(false))
    for (const one of pages) await until(async () => (await heard(one)).length === 2)
    assert.deepEqual(await second.evaluate('states'), ['open', 'hidden', 'connecting', 'open'])
  })

  it('reports that it is offline, and continues where it stopped', async (t) => {
    const { server, first } = await start(t)
    await publish(server, 1, 1)
    await until(async () => (await heard(first)).length === 1)
    await first.network(false)
    await until(async () => (await first.evaluate('news.state')) === 'offline')
    await publish(server, 2, 3)
    await first.network(true)
    await until(async () => (await heard(first)).length === 3)
    assert.deepEqual(await heard(first), [1, 2, 3])
  })
})
