import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ViewError } from '../../lib/views/template.ts'
import { createRender } from '../../lib/views/render.ts'
import { makeViews } from './make-views.ts'
import type { Files } from './make-views.ts'

const helpers = {
  UCsrfToHtml: () => '<input name="_csrf">',
  errorsOf: (field: string, form = 'form') => (field === 'bad' ? [`${field} in ${form}`, 'more'] : []),
  UResourceToHtml: (id: unknown) => (id === '' ? '' : `<input value="${String(id)}">`),
}

interface Row {
  readonly says: string
  readonly view: string
  readonly gives: string
  readonly data?: Readonly<Record<string, unknown>>
  readonly files?: Files
}

const rows: readonly Row[] = [
  // Text
  {
    says: 'text as it is',
    view: '<p>a & b</p>\r\n\t$x ${y} `\\n` "q"\u2028',
    gives: '<p>a & b</p>\r\n\t$x ${y} `\\n` "q"\u2028',
  },
  { says: 'an empty view', view: '', gives: '' },
  { says: 'a byte order mark as nothing', view: '\ufeff@if true\nx\n@endif\n', gives: 'x\n' },
  { says: '@@ as @, everywhere', view: '@@if x\na@@b @@@@ {{ "@@" }}', gives: '@if x\na@b @@ @@' },
  {
    says: 'other words after @ as text',
    view: '@media print {}\n@iffy\n@if-x\na@b.c\n@ if\n@',
    gives: '@media print {}\n@iffy\n@if-x\na@b.c\n@ if\n@',
  },
  {
    says: 'a directive word before = as text',
    view: '<a\n  @if="{{ 1 }}"\n@view=\'x\'\n@section="x" @else\n@error="y"\n@endif=\n@foreach=a in b\n>',
    gives: '<a\n  @if="1"\n@view=\'x\'\n@section="x" @else\n@error="y"\n@endif=\n@foreach=a in b\n>',
  },
  {
    says: 'a directive that is not first on its line as text',
    view: 'x @if a\n{{ 1 }}@endif\n',
    gives: 'x @if a\n1@endif\n',
  },
  { says: 'single braces as text', view: 'a { b } {c}} }} !!} {!x', gives: 'a { b } {c}} }} !!} {!x' },
  { says: 'the opening mark from a string', view: "{{ '{{' }}{!! '{!!' !!}", gives: '{{{!!' },
  // Values
  {
    says: 'special characters as references',
    view: '{{ a }}',
    data: { a: `&<>"'` },
    gives: '&amp;&lt;&gt;&quot;&#39;',
  },
  { says: 'raw values as they are', view: '{!! a !!}', data: { a: `&<>"'` }, gives: `&<>"'` },
  {
    says: 'null and undefined as nothing',
    view: '[{{ a }}{{ b }}{!! a !!}{!! b !!}]',
    data: { a: null, b: undefined },
    gives: '[]',
  },
  {
    says: 'other values as their text',
    view: '{{ 0 }} {{ -1.5 }} {{ false }} {{ 10n }} {{ [1, 2] }} {{ NaN }} {!! 0 !!}',
    gives: '0 -1.5 false 10 1,2 NaN 0',
  },
  {
    says: 'the text of an object, escaped',
    view: '{{ a }}',
    data: { a: { toString: () => '<a>' } },
    gives: '&lt;a&gt;',
  },
  // Expressions
  { says: 'the end mark in a string', view: `{{ "}}" + '!!}' }}{!! "!!}" + '}}' !!}`, gives: '}}!!}!!}}}' },
  { says: 'braces in an expression', view: '{{ {a: {b: 1}}.a.b }}{{ [{a: 2}][0].a}}', gives: '12' },
  { says: 'an object right before the end', view: '{{ JSON.stringify({a: {}}) }}', gives: '{&quot;a&quot;:{}}' },
  { says: 'templates within templates', view: '{{ `a${ `}}${ b }` }}}` }}', data: { b: 1 }, gives: 'a}}1}}' },
  { says: 'regular expressions', view: '{{ "a}}b".replace(/}}|[/}]/g, "-") }}', gives: 'a-b' },
  {
    says: 'arrow functions',
    view: '{{ list.map((x) => { return x * 2 }).join() }}',
    data: { list: [1, 2] },
    gives: '2,4',
  },
  { says: 'the comma operator', view: '{{ 1, 2 }}', gives: '2' },
  { says: 'comments in an expression', view: '{{ a /* }} */ }}{{ a // }}\n}}', data: { a: 1 }, gives: '11' },
  { says: 'a comment alone as nothing', view: 'a{{ /* }} */ }}b{!! /* !!} */ !!}c', gives: 'abc' },
  { says: 'an expression over several lines', view: '{{\n  a\n  + 1\n}}\n', data: { a: 1 }, gives: '2\n' },
  {
    says: 'no white space around an expression',
    view: '{{a}}{!!a!!}{{!a}}{!!!a!!}',
    data: { a: 1 },
    gives: '11falsefalse',
  },
  { says: 'optional chaining', view: '{{ a?.b?.c }}{{ a ?.5 : 1 }}', data: { a: null }, gives: '1' },
  // Conditions
  { says: '@if', view: 'a\n  @if a\nb\n  @endif\nc', data: { a: 1 }, gives: 'a\nb\nc' },
  { says: '@else', view: '@if a\nb\n@else\nc\n@endif', data: { a: 0 }, gives: 'c\n' },
  {
    says: '@elseif',
    view: '@if a === 1\nx\n@elseif a === 2\ny\n@elseif a === 3\nz\n@endif',
    data: { a: 2 },
    gives: 'y\n',
  },
  { says: 'conditions in brackets', view: '@if(a)\nx\n@elseif (b)\ny\n@endif', data: { a: 0, b: 1 }, gives: 'y\n' },
  {
    says: 'nested conditions',
    view: '@if a\n @if b\n  1\n @else\n  2\n @endif\n@endif',
    data: { a: 1, b: 0 },
    gives: '  2\n',
  },
  { says: 'a condition with a comment', view: '@if a // note\nx\n@endif', data: { a: 1 }, gives: 'x\n' },
  { says: 'directives with CRLF', view: '@if a\r\nx\r\n@else\r\ny\r\n@endif\r\nz', data: { a: 1 }, gives: 'x\r\nz' },
  // Loops
  {
    says: 'an array',
    view: '@foreach x in list\n<{{ x }}>\n@endforeach\n',
    data: { list: [1, '&'] },
    gives: '<1>\n<&amp;>\n',
  },
  {
    says: 'any iterable',
    view: '@foreach x in list\n{{ x[0] }}={{ x[1] }}\n@endforeach',
    data: { list: new Map([['a', 1]]) },
    gives: 'a=1\n',
  },
  { says: 'a text, character by character', view: '@foreach x in "ab"\n{{ x }}\n@endforeach', gives: 'a\nb\n' },
  {
    says: 'no items for null and undefined',
    view: '@foreach x in a\nx\n@endforeach\n@foreach x in b\nx\n@endforeach',
    data: { a: null, b: undefined },
    gives: '',
  },
  {
    says: 'nested loops, and a list that uses the outer item of the same name',
    view: '@foreach n in tree\n@foreach n in n.children\n{{ n }}\n@endforeach\n@endforeach',
    data: { tree: [{ children: [1, 2] }, { children: [3] }] },
    gives: '1\n2\n3\n',
  },
  {
    says: 'an item that hides data',
    view: '@foreach a in [1]\n{{ a }}\n@endforeach\n{{ a }}',
    data: { a: 'data' },
    gives: '1\ndata',
  },
  // Loops with patterns
  {
    says: 'entries of an object',
    view: '@foreach [key, value] in Object.entries(prices)\n{{ key }}: {{ value }}\n@endforeach',
    data: { prices: { tea: 2, rum: 7 } },
    gives: 'tea: 2\nrum: 7\n',
  },
  {
    says: 'members of objects, with defaults from the data and from names before them',
    view: "@foreach {id, name = 'x' + fallback, label = name + id} in list\n{{ id }} {{ name }} {{ label }}\n@endforeach",
    data: { list: [{ id: 1, name: 'a' }, { id: 2 }], fallback: '!' },
    gives: '1 a a1\n2 x! x!2\n',
  },
  {
    says: 'nested patterns, other names, computed keys, holes and rests',
    view: '@foreach [, {a: {b: [c]}, [key]: d, ...others}, ...more] in list\n{{ c }}{{ d }}{{ others.e }}{{ more }}\n@endforeach',
    data: { list: [[0, { a: { b: [1] }, k: 2, e: 3 }, 4, 5]], key: 'k' },
    gives: '1234,5\n',
  },
  {
    says: 'a pattern with "in" in its defaults, and a list with "in"',
    view: "@foreach {a = ' in ', b = 'k' in o} in 'k' in o ? [{}] : []\n[{{ a }}{{ b }}]\n@endforeach",
    data: { o: { k: 1 } },
    gives: '[ in true]\n',
  },
  {
    says: 'names of a pattern that hide data and helpers, in the loop only',
    view: '@foreach {a, errorsOf} in [{a: 1, errorsOf: 2}]\n{{ a }}{{ errorsOf }}\n@endforeach\n{{ a }}{{ errorsOf("bad") }}',
    data: { a: 'data' },
    gives: '12\ndatabad in form,more',
  },
  {
    says: 'nested loops with patterns, and a list that uses the outer name',
    view: '@foreach [n] in tree\n@foreach {n} in n\n{{ n }}\n@endforeach\n@endforeach',
    data: { tree: [[[{ n: 1 }, { n: 2 }]], [[{ n: 3 }]]] },
    gives: '1\n2\n3\n',
  },
  { says: 'an empty pattern', view: '@foreach {} in [1, 2]\nx\n@endforeach', gives: 'x\nx\n' },
  // Helpers
  {
    says: '@csrf at its indentation',
    view: '<form>\n  @csrf\n</form>',
    gives: '<form>\n  <input name="_csrf"></form>',
  },
  { says: '@resource', view: '@resource item.id + 1\n', data: { item: { id: 4 } }, gives: '<input value="5">' },
  { says: '@resource with a comment and a comma', view: '@resource 1, 2 // id\n', gives: '<input value="2">' },
  {
    says: '@error with the first text, in the bag that is named',
    view: "@error 'bad'\n<p>{{ message }}</p>\n@enderror\n  @error \"bad\", 'other' // it\n{{ message }}\n  @enderror\n",
    gives: '<p>bad in form</p>\nbad in other\n',
  },
  { says: '@error with two texts and no comma', view: "@error 'bad' 'other'\n{{ message }}\n@enderror", gives: 'bad in other\n' },
  { says: '@error of a field without one', view: "a\n@error 'good'\n{{ message }}\n@enderror\nb", gives: 'a\nb' },
  {
    says: '@error whose message hides that of the data, in a loop',
    view: "@foreach field in fields\n@error field + 'd', forms[0]\n{{ message }}\n@enderror\n@endforeach\n{{ message }}",
    data: { fields: ['ba', 'goo'], forms: ['x'], message: 'own' },
    gives: 'bad in x\nown',
  },
  { says: 'words that begin like @error, and @@error', view: '@errors x\n@error-x\n@@error\n', gives: '@errors x\n@error-x\n@error\n' },
  // Includes
  { says: '@view', view: 'a\n  @view "b.html"\nc', files: { 'b.html': 'B\n' }, gives: 'a\n  B\nc' },
  {
    says: 'an included view sees data and items',
    view: "@foreach x in [1, 2]\n@view 'b.html'\n@endforeach",
    files: { 'b.html': '{{ x }}{{ y }}\n' },
    data: { y: '!' },
    gives: '1!\n2!\n',
  },
  {
    says: 'the same view twice',
    view: "@view 'b.html'\n@view 'b.html'\n",
    files: { 'b.html': '@foreach x in [1]\n{{ x }}\n@endforeach\n' },
    gives: '1\n1\n',
  },
  // Layouts
  {
    says: 'a layout',
    view:
      "@layout 'l.html'\n\n@section title\nT{{ a }}\n@endsection\n \n" +
      '@section main\n@if a\nM\n@endif\n@endsection\n',
    files: { 'l.html': '<title>\n@yield title\n</title>\n  @yield main\n@yield none\nend' },
    data: { a: 1 },
    gives: '<title>\nT1\n</title>\n  M\nend',
  },
  {
    says: '@layout after the sections',
    view: "@section a\nA\n@endsection\n@layout 'l.html'",
    files: { 'l.html': '@yield a\n' },
    gives: 'A\n',
  },
  {
    says: 'a layout within a layout; the nearer section counts and may yield the farther',
    view: "@layout 'l.html'\n@section a\nviewA\n@endsection\n@section b\nviewB\n@endsection\n",
    files: {
      'l.html': "@layout 'm.html'\n@section a\n[\n@yield a\n]\n@endsection\n",
      'm.html': '@yield a\n@yield b\n@yield c\n',
    },
    gives: '[\nviewA\n]\nviewB\n',
  },
  {
    says: '@yield in a view that the layout includes',
    view: "@layout 'l.html'\n@section a\nA\n@endsection\n",
    files: { 'l.html': "@view 'head.html'\n", 'head.html': '<\n@yield a\n>' },
    gives: '<\nA\n>',
  },
  {
    says: 'an included view with a layout of its own',
    view: "@layout 'l.html'\n@section a\n@view 'box.html'\n@endsection\n",
    files: {
      'l.html': '@yield a\n',
      'box.html': "@layout 'frame.html'\n@section a\nbox\n@endsection\n",
      'frame.html': '[\n@yield a\n]\n',
    },
    gives: '[\nbox\n]\n',
  },
  { says: '@yield without a section as nothing', view: 'a\n  @yield a\nb', gives: 'a\nb' },
  {
    says: 'a section that is yielded twice',
    view: "@layout 'l.html'\n@section a\n{{ x }}\n@endsection\n",
    files: { 'l.html': '@yield a\n@yield a\n' },
    data: { x: 1 },
    gives: '1\n1\n',
  },
]

for (const { says, view, data = {}, files = {}, gives } of rows) {
  test(`renders ${says}`, () => {
    const { views } = makeViews({ 'v.html': view, ...files })
    assert.equal(views.render('v.html', data, helpers), gives)
  })
}

const failures: readonly (readonly [view: string, message: string | RegExp, data?: Record<string, unknown>])[] = [
  ['a\n{{ titel }}', 'v.html:2: unknown name "titel"'],
  ['@if titel\n@endif', 'v.html:1: unknown name "titel"'],
  ['\n@if false\n@elseif titel\n@endif', 'v.html:3: unknown name "titel"'],
  ['@if true\n{{ 1 }}\n@endif\n\n@foreach x in titel\n@endforeach', 'v.html:5: unknown name "titel"'],
  ['@foreach x in [1]\n@endforeach\n{{ x }}', 'v.html:3: unknown name "x"'],
  ['@foreach {x} in [{}]\n@endforeach\n{{ x }}', 'v.html:3: unknown name "x"'],
  ['\n@foreach {x = titel} in [{}]\n@endforeach', 'v.html:2: unknown name "titel"'],
  ['\n@foreach {x = process} in [{}]\n@endforeach', 'v.html:2: unknown name "process"'],
  ['\n@foreach {x} in [{}, null]\n{{ 1 }}\n@endforeach', /^v\.html:2: Cannot destructure property 'x' of .* null/],
  ['@foreach [x] in [1]\n@endforeach', /^v\.html:1: .* is not iterable/],
  ['{{ [1].map((a) => a + b) }}', 'v.html:1: unknown name "b"'],
  ['\n{{\n\n a.b.c }}', "v.html:2: Cannot read properties of undefined (reading 'c')", { a: {} }],
  ['{{ a() }}', 'v.html:1: a is not a function', { a: 1 }],
  ['{{ a = 2 }}', 'v.html:1: Assignment to constant variable.', { a: 1 }],
  ['@foreach x in a\n@endforeach', 'v.html:1: @foreach needs a list: the value is a number', { a: 5 }],
  ['@foreach x in a\n@endforeach', /^v\.html:1: .* the value is an object that cannot be iterated/, { a: {} }],
  ['@foreach x in a\n@endforeach', /^v\.html:1: .* the value is a promise/, { a: Promise.resolve() }],
  ['{{ a }}', 'v.html:1: the value is a promise: await it in the action', { a: Promise.resolve() }],
  ['{!! a !!}', 'v.html:1: the value is a promise: await it in the action', { a: Promise.resolve() }],
  ['{{ Object.create(null) }}', 'v.html:1: Cannot convert object to primitive value'],
  ['{{ a() }}', "v.html:1: 'text' was thrown", { a: () => { throw 'text' } }],
  ['{{ a() }}', 'v.html:1: other is not defined', { a: () => { throw new ReferenceError('other is not defined') } }],
]

for (const [view, message, data = {}] of failures) {
  test(`fails to render ${JSON.stringify(view)} with file and line: ${message}`, () => {
    const { views } = makeViews({ 'v.html': view })
    assert.throws(() => views.render('v.html', data, {}), { name: 'ViewError', message })
  })
}

test('names the file and line of an included view, of a layout and of a section', () => {
  const { views } = makeViews({
    'include.html': "{{ 1 }}\n@view 'parts/row.html'\n",
    'parts/row.html': 'x\n\n{{ nope }}',
    'section.html': "@layout 'parts/layout.html'\n@section a\n\n{{ nope }}\n@endsection\n",
    'layout.html': "@layout 'parts/layout.html'\n@section a\n{{ 1 }}\n@endsection\n",
    'parts/layout.html': '@yield a\n{{ other }}',
  })
  const message = (file: string) => {
    try {
      return views.render(file, {}, {})
    } catch (error) {
      return (error as Error).message
    }
  }
  assert.equal(message('include.html'), 'parts/row.html:3: unknown name "nope"')
  assert.equal(message('section.html'), 'section.html:4: unknown name "nope"')
  assert.equal(message('layout.html'), 'parts/layout.html:2: unknown name "other"')
})

test('keeps the original error as the cause', () => {
  const { views } = makeViews({ 'v.html': '\n{{ fail() }}' })
  const cause = new RangeError('too far')
  const fail = () => {
    throw cause
  }
  assert.throws(
    () => views.render('v.html', {}, { fail }),
    (error) => error instanceof ViewError && error.cause === cause && error.line === 2 && error.file === 'v.html',
  )
})

test('passes through the error of a view rendered by a helper', () => {
  const { views } = makeViews({ 'outer.html': '{{ part() }}', 'inner.html': '\n\n{{ nope }}' })
  const part = () => views.render('inner.html', {}, {})
  assert.throws(() => views.render('outer.html', {}, { part }), { message: 'inner.html:3: unknown name "nope"' })
})

test('reports that the engine refuses a compiled view', () => {
  const program = { source: '}', names: [], places: [], files: ['v.html'], absent: [] }
  assert.throws(() => createRender(program), {
    name: 'ViewError',
    message: /^v\.html: the engine refuses the compiled view: /,
  })
})
