import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { FullContext } from '../support/context.ts'
import { startChain, type Actions } from './chain-server.ts'

const actions: Actions = {
  '/set SVC_MwSession': ({ flash, query }) => {
    flash(query.get('id') ?? 'f').set({ type: 'success', message: 'Saved' })
    return ''
  },
  '/get SVC_MwSession': ({ UFlash, query }) => [UFlash(query.get('id') ?? 'f').get('message', 'none')],
  '/has SVC_MwSession': ({ flash }) => [flash('f').has('message')],
  '/drain SVC_MwSession': ({ flash }) => ['type', 'message'].map((key) => flash('f').get(key, 'none')),
  '/again SVC_MwSession': ({ flash }) => {
    const bag = flash('f')
    bag.set('message', `${String(bag.get('message'))} again`)
    return ''
  },
  '/raw SVC_MwSession': ({ session }) => [session.get('_flash', 'none')],
  '/other SVC_MwSession': () => 'other',
  '/out SVC_MwSession': (ctx) => {
    ctx.flash('f').set('message', 'before')
    ctx.session.destroy()
    return [ctx.flash('f').has('message')]
  },
  '/out-and-say SVC_MwSession': ({ flash, session }) => {
    const bag = flash('f')
    bag.set('secret', 1)
    session.destroy()
    bag.set('message', 'Signed out')
    return ''
  },
  '/refused SVC_MwSession': (ctx) => {
    ctx.flash('f').set('message', 'Refused')
    ctx.fail(422, 'refused', 'no')
  },
  '/failed SVC_MwSession': (ctx) => {
    ctx.flash('f').get('message')
    throw new Error('failed')
  },
  '/without': ({ flash }) => {
    flash('f').set('message', 'here')
    return [flash('f').get('message'), flash('f').get('message', 'none')]
  },
  '/without-too': ({ flash }) => [flash('f').get('message', 'none')],
  '/empty SVC_MwSession': ({ flash }) => flash(''),
  '/number': (ctx: FullContext) => Reflect.apply(ctx.flash, ctx, [1]),
  '/nothing': (ctx: FullContext) => Reflect.apply(ctx.flash, ctx, []),
}

describe('flash messages', () => {
  it('survive a redirect and any number of requests that do not read them, and are shown once', async (t) => {
    const { client } = await startChain(t, actions)
    const send = client()
    await send('/set')
    for (let left = 3; left > 0; left -= 1) await send('/other')
    assert.deepEqual((await send('/has')).json(), [true])
    assert.deepEqual((await send('/raw')).json(), [{ f: { type: 'success', message: 'Saved' } }])
    assert.deepEqual((await send('/get')).json(), ['Saved'])
    assert.deepEqual((await send('/get')).json(), ['none'])
    assert.deepEqual((await send('/raw')).json(), [{ f: { type: 'success' } }])
    assert.deepEqual((await client()('/get')).json(), ['none'], 'another client has no message')
  })

  it('leave no bag in the session when all have been read', async (t) => {
    const send = (await startChain(t, actions)).client()
    await send('/set')
    await send('/set?id=other')
    assert.deepEqual((await send('/drain')).json(), ['success', 'Saved'])
    assert.deepEqual((await send('/raw')).json(), [{ other: { type: 'success', message: 'Saved' } }])
  })

  it('can be kept for another redirect: read, and set again', async (t) => {
    const send = (await startChain(t, actions)).client()
    await send('/set')
    await send('/again')
    assert.deepEqual((await send('/get')).json(), ['Saved again'])
  })

  it('are kept separately by id when parallel requests set them', async (t) => {
    const send = (await startChain(t, actions)).client()
    await send('/set?id=first')
    await Promise.all(Array.from({ length: 50 }, (_, at) => send(`/set?id=form${at}`)))
    const [bags] = (await send('/raw')).json() as [Record<string, unknown>]
    assert.equal(Object.keys(bags).length, 51)
  })

  const unseen: readonly (readonly [string, string, Record<string, string>])[] = [
    ['HEAD', 'HEAD', {}],
    ['prefetch', 'GET', { 'sec-purpose': 'prefetch' }],
    ['prerender', 'GET', { 'sec-purpose': 'prefetch;prerender' }],
    ['prefetch by an older browser', 'GET', { purpose: 'prefetch' }],
  ]
  for (const [what, method, headers] of unseen) {
    it(`are not removed by a ${what}`, async (t) => {
      const send = (await startChain(t, actions)).client()
      await send('/set')
      const ahead = await send('/get', { method, headers })
      assert.equal(ahead.text, method === 'HEAD' ? '' : '["Saved"]')
      assert.deepEqual((await send('/get', { headers: { 'sec-purpose': 'navigate' } })).json(), ['Saved'])
      assert.deepEqual((await send('/get')).json(), ['none'])
    })
  }

  it('end with the session; later messages belong to the next session', async (t) => {
    const send = (await startChain(t, actions)).client()
    await send('/set')
    assert.deepEqual((await send('/out')).json(), [false])
    assert.deepEqual((await send('/raw')).json(), ['none'])
    await send('/set')
    await send('/out-and-say')
    assert.deepEqual((await send('/raw')).json(), [{ f: { message: 'Signed out' } }])
  })

  it('are kept after an intended refusal, and dropped after a failed request', async (t) => {
    const send = (await startChain(t, actions)).client()
    assert.equal((await send('/refused')).status, 422)
    assert.equal((await send('/failed')).status, 500)
    assert.deepEqual((await send('/get')).json(), ['Refused'])
  })

  it('last for one request without a session, which is logged once per route', async (t) => {
    const { client, lines } = await startChain(t, actions)
    const send = client()
    for (let left = 3; left > 0; left -= 1) {
      const answer = await send('/without')
      assert.deepEqual(answer.json(), ['here', 'none'])
      assert.equal(answer.headers['set-cookie'], undefined)
      assert.deepEqual((await send('/without-too')).json(), ['none'])
    }
    const warned = lines.filter((line) => line.startsWith('WARN')).map((line) => line.replace(/\[[\w-]{36}\]$/, '[id]'))
    assert.deepEqual(warned, [
      'WARN error flash on route "without" has no session: add SVC_MwSession to its middleware [id]',
      'WARN error flash on route "without-too" has no session: add SVC_MwSession to its middleware [id]',
    ])
  })

  it('are available in views under the name of the specification', async (t) => {
    const views: Actions = {
      '/view SVC_MwSession': (ctx) => {
        const { UFlash } = server.viewScope(ctx) as { UFlash: FullContext['flash'] }
        return [UFlash('f').get('message', 'none'), 'flash' in server.viewScope(ctx)]
      },
    }
    const server = await startChain(t, { ...actions, ...views })
    const send = server.client()
    await send('/set')
    assert.deepEqual((await send('/view')).json(), ['Saved', false])
    assert.deepEqual((await send('/view')).json(), ['none', false])
  })

  it('refuse an id that is empty or not a string', async (t) => {
    const { send, lines } = await startChain(t, actions)
    for (const path of ['/empty', '/number', '/nothing']) assert.equal((await send(path)).status, 500)
    const message = 'ERROR internal_error Cannot open a flash bag: its id must be a non-empty string: it is'
    assert.deepEqual(lines, [`${message} empty`, `${message} a number`, `${message} undefined`])
  })
})
