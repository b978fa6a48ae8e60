// The messages of `ctx.validate`: the defaults and those of an application.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createMessageGroup, messageTable } from '../../lib/validation/messages.ts'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

const action = `export default async (ctx) => {
  const { text, integer, number, date, list, choice, file, boolean } = ctx.fields
  return ctx.validate(ctx.fields({
    required: text(), single: text(), text: text(), short: text({ min: 2 }), long: text({ max: 2 }), pattern: text({ pattern: /^a$/ }),
    email: ctx.fields.email(), url: ctx.fields.url(), integer: integer(), number: number(), small: number({ min: 0.5 }), large: integer({ max: 3 }),
    boolean: boolean(), date: date(), early: date({ min: '2024-01-02' }), late: date({ max: '2024-01-02' }), choice: choice('s', 'm'),
    list: list(text()), few: list(text(), { min: 2 }), many: list(text(), { max: 1 }), object: ctx.fields.object({}), file: file(),
  }))
}`
const body = {
  single: [], text: 1, short: 'x', long: 'xxx', pattern: 'b', email: 'x', url: 'x', integer: 1.5, number: 'x', small: 0, large: 4, boolean: 1, date: 'x',
  early: '2024-01-01', late: '2024-01-03', choice: 'l', list: 1, few: ['x'], many: ['x', 'y'], object: 1, file: 1,
}
const english = {
  required: ['Required'], single: ['Must be a single value'], text: ['Must be a text'], short: ['Must have at least 2 characters'],
  long: ['Must have at most 2 characters'], pattern: ['Does not have the expected form'], email: ['Must be an email address'],
  url: ['Must be an address that begins with http:// or https://'], integer: ['Must be a whole number'], number: ['Must be a number'],
  small: ['Must be 0.5 or more'], large: ['Must be 3 or less'], boolean: ['Must be yes or no'], date: ['Must be a date that exists, as YYYY-MM-DD'],
  early: ['Must be 2024-01-02 or later'], late: ['Must be 2024-01-02 or earlier'], choice: ['Must be one of: s, m'], list: ['Must be a list'],
  few: ['Must have at least 2 entries'], many: ['Must have at most 1 entries'], object: ['Must be an object'], file: ['Must be a file'],
}

async function ask(t: TestContext, validate?: unknown) {
  const config = validate === undefined ? {} : { 'routes/middleware/config.json': { setup: { validate } } }
  const app = await startApplication(t, { 'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs' }], 'a.mjs': action, ...config })
  const errors = async () => {
    const answer = await request(app.url, { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
    return (answer.json() as { errors: Record<string, string[]> }).errors
  }
  return { app, errors }
}

describe('the messages', () => {
  it('are plain English', async (t) => {
    const { errors } = await ask(t)
    assert.deepEqual(await errors(), english)
  })

  it('come from setup.validate.messages if set there, also after a reload', async (t) => {
    const { app, errors } = await ask(t, { messages: { required: 'Bitte ausfüllen', too_long: 'Höchstens {max}', choice: '$& {choices}' } })
    const { required, long, choice, short } = await errors()
    assert.deepEqual([required, long, choice, short], [['Bitte ausfüllen'], ['Höchstens 2'], ['$& s, m'], english.short])
    app.write({ 'routes/middleware/config.json': { setup: { validate: { messages: { required: 'Påkrevd' } } } } })
    await app.app.control.apply({ type: 'routes.reload' })
    const after = await errors()
    assert.deepEqual([after['required'], after['long']], [['Påkrevd'], english.long])
  })

  const rows: readonly (readonly [given: unknown, problem: RegExp])[] = [
    ['x', /setup\.validate must be an object with messages/],
    [[], /setup\.validate must be an object/],
    [{ messages: 'x' }, /setup\.validate\.messages must be an object with required, single/],
    [{ messages: { required: 1 } }, /setup\.validate\.messages\.required must be a string: it is 1/],
    [{ messages: { required: ' ' } }, /setup\.validate\.messages\.required must be a text that is not empty/],
    [{ messages: { required: '{max}' } }, /messages\.required must not have \{max\}: this message has no placeholder: it is "\{max\}"/],
    [{ messages: { too_long: '{mx}' } }, /messages\.too_long must not have \{mx\}: it may have \{max\}/],
  ]
  for (const [given, problem] of rows) {
    it(`are checked: ${JSON.stringify(given)}`, async (t) => {
      await assert.rejects(ask(t, given), problem)
      assert.throws(() => createMessageGroup().prepare(given), problem)
    })
  }

  it('with an unknown name are a warning that suggests the right name', () => {
    const { warnings } = createMessageGroup().prepare({ messages: { requird: 'x' }, message: {} })
    assert.deepEqual(warnings, [
      'unknown key setup.validate.messages.requird: did you mean required?',
      'unknown key setup.validate.message: it has messages',
    ])
  })

  it('each have a default', () => {
    assert.ok(Object.keys(messageTable).length > 20)
    for (const row of Object.values(messageTable)) assert.equal(row.kind === 'string' && row.check?.(row.default), undefined)
  })
})
