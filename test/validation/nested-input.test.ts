// `old('lines')`: the rows and parts of a refused form as lists and objects.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nestInput } from '../../lib/validation/form.ts'
import { startForms, type Person } from './validate-application.ts'

const plain = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)))
const deep = Array.from({ length: 40 }, () => 'a').join('.')

describe('nestInput', () => {
  const rows: readonly (readonly [what: string, input: Readonly<Record<string, unknown>>, name: string, value: unknown])[] = [
    ['rows', { 'l.0.a': '1', 'l.0.b': '2', 'l.1.a': '3' }, 'l', [{ a: '1', b: '2' }, { a: '3' }]],
    ['one row', { 'l.0.a': '1', 'l.1.a': '3' }, 'l.1', { a: '3' }],
    ['rows in order of their numbers', { 'l.10.a': '10', 'l.9.a': '9', 'l.999999.a': 'last' }, 'l', [{ a: '9' }, { a: '10' }, { a: 'last' }]],
    ['a list of texts', { 'l.1': 'b', 'l.0': 'a' }, 'l', ['a', 'b']],
    ['lists in rows', { 'l.0.t': ['x'], 'l.0.r.0.a': '1' }, 'l', [{ t: ['x'], r: [{ a: '1' }] }]],
    ['an object', { 'a.b': '1', 'a.c.d': '2' }, 'a', { b: '1', c: { d: '2' } }],
    ['a part of an object', { 'a.c.d': '2' }, 'a.c', { d: '2' }],
    ['nothing', { 'ab.c': '1', a: 'x' }, 'ab.d', undefined],
    ['a name that begins alike', { 'ab.c': '1' }, 'a', undefined],
    ['a name before names below it', { a: 'x', 'a.b': '1' }, 'a', 'x'],
    ['a name below', { a: 'x', 'a.b': '1' }, 'a.b', '1'],
    ['a list of a name before its rows', { a: ['x'], 'a.0.b': '1' }, 'a', ['x']],
    ['a list of the schema with rows', { a: [], 'a.0.b': '1' }, 'a', [{ b: '1' }]],
    ['a list of the schema with other names', { a: [], 'a.b': '1', 'a.01.b': '2', 'a.-1': '3', 'a.1000000.b': '4' }, 'a', []],
    ['a list of the schema without rows', { a: [] }, 'a', []],
    ['numbers beside other names', { 'a.0': 'x', 'a.b': 'y' }, 'a', { 0: 'x', b: 'y' }],
    ['other numbers', { 'a.01': 'x', 'a.1000000': 'y' }, 'a', { '01': 'x', 1000000: 'y' }],
    ['empty parts', { '.': 'x', 'a..b': 'y', '..': 'z' }, 'a', { '': { b: 'y' } }],
    ['too many levels', { [deep]: 'x' }, 'a', undefined],
    ['a name that continues one of many levels', { [deep.slice(0, 63)]: 'x' }, deep, undefined],
    ['a name of many levels', { [deep.slice(0, 63)]: 'x' }, deep.slice(0, 63), 'x'],
    ['no value', { a: undefined }, 'a', undefined],
    ['an odd name', { 'constructor.prototype.x': '1' }, 'constructor', { prototype: { x: '1' } }],
  ]
  for (const [what, input, name, value] of rows) it(what, () => assert.deepEqual(plain(nestInput(input)(name)), value))

  it('makes members of any name, and changes no prototype', () => {
    const find = nestInput(JSON.parse('{"a.__proto__.x":"1","__proto__.y":"2","a.toString":"3"}') as Record<string, unknown>)
    assert.equal(JSON.stringify(find('a')), '{"__proto__":{"x":"1"},"toString":"3"}')
    assert.equal(JSON.stringify(find('__proto__')), '{"y":"2"}')
    assert.equal(({} as { x?: unknown; y?: unknown }).x ?? ({} as { y?: unknown }).y, undefined)
    assert.equal('hasOwnProperty' in (find('a') as object), false)
  })

  it('makes objects that print as nothing and have no items', () => {
    for (const input of [{ 'a.b': '1' }, { 'a.toString': '1', 'a.valueOf': '2' }]) {
      const object = nestInput(input)('a') as Iterable<unknown>
      assert.equal(String(object), '')
      assert.deepEqual([...object], [])
    }
  })
})

const order = `import { fields } from 'svc'
const order = fields({
  title: fields.text({ max: 5 }),
  lines: fields.list(fields.object({ name: fields.text(), price: fields.number(), code: fields.secret().optional() })).optional(),
  address: fields.object({ city: fields.text() }).optional(),
})
export const save = async (ctx) => {
  if (ctx.query.has('unknown')) {
    await ctx.readForm()
    ctx.invalid({ title: 'No' })
  }
  return ctx.validate(order)
}
`
const rows = `@foreach row in old('lines', [{ name: 'first' }]).entries()
<input name="lines.{{ row[0] }}.name" value="{{ row[1].name }}">{{ row[1].price }}{{ row[1].code }} {{ errorsOf('lines.' + row[0] + '.price').join() }}
@endforeach
`
/** Without a method of a list: where no schema has read a form, a client decides what is a list. */
const rest = `<b>{{ old('address', { city: 'Oslo' }).city }}|{{ old('address.city') }}|{{ old('lines.0.name') }}|{{ old('title') }}</b>
@foreach line in old('lines')
<i>{{ line.name }}</i>
@endforeach
`
const files = {
  'o.mjs': order,
  'o.html': rows + rest,
  'rest.html': rest,
  'routes/o.json': [
    { name: 'o', method: 'GET', url: '/o', action: 'o.html', middleware: 'SVC_MwSession' },
    { name: 'rest', method: 'GET', url: '/rest', action: 'rest.html', middleware: 'SVC_MwSession' },
    { name: 'o.save', method: 'POST', url: '/o', action: 'o.mjs@save', middleware: 'SVC_MwSession' },
  ],
}

/** Sends a form; returns its page. */
async function shown({ app, post, open }: Person, body: string, path = '/o', page = '/o'): Promise<string> {
  const { status, text } = await post(path, body, { from: page })
  assert.equal(status, 303, text)
  const answer = await open(page)
  assert.equal(answer.status, 200, app.lines().filter((line) => line.includes('ERROR')).join())
  return answer.text
}

describe('old() of a list or an object', () => {
  it('gives the rows and parts that were sent, without secrets', async (t) => {
    const person = await startForms(t, files)
    const text = await shown(person, 'title=toolong&lines.1.name=b&lines.1.price=x&lines.1.code=9&lines.0.name=a&lines.0.price=2&address.city=')
    assert.equal(text, `<input name="lines.0.name" value="a">2 
<input name="lines.1.name" value="b">x Must be a number
<b>||a|toolong</b>
<i>a</i>
<i>b</i>
`)
    assert.match((await person.open('/o')).text, /value="first"> \n<b>Oslo\|\|\|<\/b>\n$/)
  })

  it('gives an empty list where all rows were removed', async (t) => {
    const person = await startForms(t, files)
    assert.equal(await shown(person, 'title=&address.city=Bergen'), '<b>Bergen|Bergen||</b>\n')
  })

  it('of any names does no harm', async (t) => {
    const person = await startForms(t, files)
    const bodies = [
      '__proto__.x=1&lines.__proto__.name=1&constructor.a=1', 'lines.999999.name=a', 'lines=x&lines.0.name=a', 'lines=&lines=&lines.a=1', 'lines.a=1', 'lines.0=a',
      'lines.0.name.x=1', 'lines.0.name.toString=1&lines.0.name.valueOf=2', 'lines.0.name.0=1', 'title.a=1', 'title.toString=1', 'title.0.a=1', 'address.0=1', 'address=x',
      'address.city.x.y=1', `${deep}=1&lines.${deep}=1`, Array.from({ length: 1000 }, (_, at) => `lines.${at}=`).join('&'), '.=1&..=2&lines.=3&lines..name=4',
    ]
    for (const body of bodies) {
      await shown(person, `${body}&x=1`)
      await shown(person, `${body}&x=1`, '/o?unknown', '/rest')
    }
    assert.equal(person.app.lines().some((line) => / WARN | ERROR/.test(line)), false)
  })
})
