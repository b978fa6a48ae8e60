// docs/context.md: it has every member of the context once, and none that there is not; its examples run as they stand.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { startApplication } from './support/application.ts'
import { contextRows, type ContextRow } from './support/context-page.ts'
import { readPage, tableBelow } from './support/markdown.ts'
import { exchange, parseAnswer } from './support/raw.ts'
import { request } from './support/request.ts'

const page = readPage('docs/context.md')
const rows = contextRows(page)

describe('docs/context.md', () => {
  /** Members of the class that are for the server's own parts. */
  const internal = `
    request response services body run running counted sentBytes receivedBytes holdsWorker expectsContinue givenId hasBody hostField hostCount header
    startedAt routeName sentStatus leftWait durationMs idToSend closed left outgoing outgoingIfAny lastOnConnection neverCompressed lastingCookie matched replyOf
    currentReply redirection formatOfPrefix errorFormat bodyLimitBytes memo close drop discardBody parked gone abort upgrading`.trim().split(/\s+/)

  it('lists the members of the context, each once', async (t) => {
    const members = await askForMembers(t)
    assert.deepEqual(rows.map(({ name }) => name).sort(), members.filter((name) => !internal.includes(name)).sort())
  })

  it('names no member as internal that is none', async (t) => {
    const members = await askForMembers(t)
    assert.deepEqual(internal.filter((name) => !members.includes(name)), [])
  })

  it('has an example of each member that uses it and gives what stands there', async (t) => {
    const [route = ''] = page.blocks.filter(({ language }) => language === 'json').map(({ text }) => text)
    const { port } = await startApplication(t, {
      'routes/notes.json': [JSON.parse(route)],
      'notes.mjs': moduleOf(rows),
      'note.html': '<h1>{{ title }}</h1>',
    })
    for (const { name, example } of rows) {
      const { status, headers } = parseAnswer(await exchange(port, requestFor(name)))
      assert.equal(status >= 400, name === 'fail', `${name}: ${status}`)
      assert.ok(headers['x-used']?.split(' ').includes(name), `${example} uses ${headers['x-used']}`)
      assert.equal(headers['x-value'], headers['x-expected'], example)
    }
  })

  it('lists what sessions and flash bags can do', async (t) => {
    const { url } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs', middleware: 'SVC_MwSession' }],
      'a.mjs': `const names = (of) => Object.getOwnPropertyNames(Object.getPrototypeOf(of))
        export default ({ session, flash }) => [names(session), names(flash('a'))]`,
    })
    const found = (await request(url)).json() as [string[], string[]]
    const hidden = ['constructor', 'isOpen', 'came', 'flashBag', 'setFlashBag', 'open', 'finish']
    for (const [at, heading] of ['## Sessions', '## Flash messages'].entries()) {
      const cells = tableBelow(page, heading).filter((row) => row.length === 2)
      const documented = new Set(cells.flatMap(([cell = '']) => [...cell.matchAll(/`(\w+)\(/g)].map(([, name]) => name)))
      assert.deepEqual([...documented].sort(), (found[at] ?? []).filter((name) => !hidden.includes(name)).sort())
    }
  })
})

/** The request that the page shows, with the name of the example to run. */
function requestFor(name: string): string {
  const shown = page.blocks.find(({ language }) => language === 'http')?.text ?? ''
  const json = { type: 'application/json', body: '{ "id": 7}' } // As long as the form.
  const text = name === 'readJson' ? shown.replace(/application\/x-www.*/, json.type).replace('title=Milk', json.body) : shown
  const [head = '', body = ''] = text.split('\n\n')
  return `${head.replaceAll('\n', '\r\n')}\r\nX-Example: ${name}\r\nConnection: close\r\n\r\n${body.trimEnd()}`
}

/** A module whose action runs the example that the request names, and says what it used and what came out. */
function moduleOf(examples: readonly ContextRow[]): string {
  const functions = examples.map(({ name, example }) => {
    const [code = '', expected] = example.split(' // ')
    if (expected === undefined) return `${name}: async (ctx) => { ${code} },\n`
    return `${name}: async (ctx) => {
      const value = ${code}
      ctx.setHeader('X-Value', inspect(value))
      ctx.setHeader('X-Expected', inspect(${expected}))
    },\n`
  })
  return `import { setTimeout } from 'node:timers/promises'
    import { inspect } from 'node:util'
    const examples = { ${functions.join('')} }
    export default async (ctx) => {
      const used = new Set()
      const seen = new Proxy(ctx, {
        get: (target, name) => (used.add(name), target[name]),
        set: (target, name, value) => (used.add(name), (target[name] = value), true),
      })
      try {
        return await examples[ctx.headers['x-example']](seen)
      } finally {
        ctx.setHeader('X-Used', [...used].join(' '))
      }
    }`
}

async function askForMembers(t: TestContext): Promise<string[]> {
  const names = `export default (ctx) => {
    const names = new Set()
    for (let at = ctx; at !== Object.prototype; at = Object.getPrototypeOf(at)) {
      for (const name of Object.getOwnPropertyNames(at)) names.add(name)
    }
    names.delete('constructor')
    return [...names]
  }`
  const { url } = await startApplication(t, {
    'routes/a.json': [{ name: 'names', url: '/', action: 'names.mjs' }],
    'names.mjs': names,
  })
  return (await request(url)).json() as string[]
}
