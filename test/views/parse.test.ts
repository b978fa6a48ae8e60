import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeViews } from './make-views.ts'
import type { Files } from './make-views.ts'

const mistakes: readonly (readonly [view: string, message: string | RegExp, files?: Files])[] = [
  // Expressions
  ['\n{{ a', '2: {{: the "}}" that ends the expression is missing'],
  ['{!! a }}', '1: {!!: the "!!}" that ends the expression is missing'],
  ['{!!}', '1: {!!: the "!!}" that ends the expression is missing'],
  ['{{ a // }}', '1: {{: the "}}" that ends the expression is missing'],
  ['{{ a } }}', "1: {{: Unexpected token '}'"],
  ['{{ a }, {{ b }}', '1: {{: the "}}" that ends the expression is missing'],
  ['{!! a }}, {!! b !!}', '1: {!!: the "!!}" that ends the expression is missing'],
  ['{{ a) }}', '1: {{: the expression is not complete, or has a bracket too many'],
  ['{{ }}', '1: {{ has no expression'],
  ['{!!!!}', '1: {!! has no expression'],
  ['{{ a) + (b }}', "1: {{: Unexpected token ')'"],
  ['{{ (a }}', '1: {{: the expression is not complete, or has a bracket too many'],
  ['{{ [(a] }}', "1: {{: Unexpected token ']'"],
  ['{{ a; b }}', "1: {{: Unexpected token ';'"],
  ['{{ ...a }}', "1: {{: Unexpected token '...'"],
  ['{{ a, }}', '1: {{: the expression is not complete, or has a bracket too many'],
  ['{{ a + }}', '1: {{: the expression is not complete, or has a bracket too many'],
  ['x\n{{\n1 +\n* 2 }}', "2: {{: Unexpected token '*'"],
  ["{{ a\n\n'b }}", '1: {{: Invalid or unexpected token'],
  ['{{ `a }}', '1: {{: the expression is not complete, or has a bracket too many'],
  ['{{ a\u2028+\r+\r\n;\n }}', "1: {{: Unexpected token ';'"],
  ['{{ let x = 1 }}', /^1: \{\{: /],
  ['{{ return 1 }}', /^1: \{\{: /],
  ['{{ await a }}', /^1: \{\{: /],
  ['{{ new.target }}', /^1: \{\{: /],
  ['{{ static }}', /^1: \{\{: /],
  ['{{ 010 }}', /^1: \{\{: /],
  ["{{ '/notes/' + await id }}", /^1: \{\{: /],
  ['{{ `/notes/${await id}` }}', /^1: \{\{: /],
  ['\n@if a) { (b\n@endif', "2: @if: Unexpected token '{'"],
  ['\n@if "a\n@endif', /^2: @if: /],
  ['\n@if a /* b\n@endif', /^2: @if: /],
  // Directives
  ['@if\n@endif', '1: @if needs an expression'],
  ['@if a\n@elseif\n@endif', '2: @elseif needs an expression'],
  ['@resource', '1: @resource needs an expression'],
  ['@error\n@enderror', '1: @error needs an expression'],
  ["@error 'a'\n@enderror 'a'", "2: @enderror takes no argument: it has \"'a'\" (plain text begins with @@enderror)"],
  ["\n@error 'a',\n@enderror", /^2: @error: /],
  ['@error title of\n@enderror', /^1: @error: /],
  ['@csrf()', '1: @csrf takes no argument: it has "()" (plain text begins with @@csrf)'],
  ['@if a\n@else if b\n@endif', '2: @else takes no argument: it has "if b" (plain text begins with @@else)'],
  ['@foreach x of y\n@endforeach', '1: @foreach must be "@foreach item in expression": it is "@foreach x of y"'],
  ['@foreach class in y\n@endforeach', '1: @foreach needs a name or a pattern before "in": "class" is not a name, or is reserved'],
  ['@foreach a b in y\n@endforeach', /^1: @foreach needs a name .*: "a b" is not a name/],
  ['@foreach this in y\n@endforeach', /^1: @foreach needs a name/],
  ['@foreach svc$out in y\n@endforeach', /^1: @foreach needs a name/],
  ['@foreach undefined in y\n@endforeach', /^1: @foreach needs a name/],
  ['@foreach [a, b in y\n@endforeach', '1: @foreach needs a name or a pattern before "in": "[a, b": the pattern is not complete'],
  ['\n@foreach {a b} in y\n@endforeach', /^2: @foreach needs .*: "\{a b\}": Unexpected identifier/],
  ['@foreach {a: 1} in y\n@endforeach', /^1: @foreach needs .*: "\{a: 1\}": Invalid destructuring assignment target/],
  ['@foreach [...a, b] in y\n@endforeach', /^1: @foreach needs .*: Rest element must be last element/],
  ['@foreach [a, {b: a}] in y\n@endforeach', /^1: @foreach needs .*: Identifier 'a' has already been declared/],
  ['@foreach [a] = c in y\n@endforeach', /^1: @foreach needs .*: "\[a\] = c": /],
  ['@foreach [a], b in y\n@endforeach', /^1: @foreach needs .*: "\[a\], b": /],
  ['@foreach [a]; [b] in y\n@endforeach', /^1: @foreach needs .*: "\[a\]; \[b\]": /],
  ['@foreach [a]) => 0, (...[b] in y\n@endforeach', /^1: @foreach needs /],
  ['@foreach [a] // c in y\n@endforeach', /^1: @foreach needs /],
  ['@foreach {a, svc$at} in y\n@endforeach', '1: @foreach needs a name or a pattern before "in": "{a, svc$at}": "svc$at" is reserved'],
  ['@foreach [...undefined] in y\n@endforeach', /^1: @foreach needs .*: "undefined" is reserved/],
  ['@foreach [await] in y\n@endforeach', /^1: @foreach needs .*: "await" is reserved/],
  ['@foreach [a] in y +\n@endforeach', '1: @foreach: the expression is not complete, or has a bracket too many'],
  ["@view b.html", '1: @view needs a file name in quotes: it has b.html'],
  ['@view', '1: @view needs a file name in quotes: it has nothing'],
  [`@layout "b.html'`, `1: @layout needs a file name in quotes: it has "b.html'`],
  ['@yield', '1: @yield needs a name of letters, digits, "_" and "-": it has nothing'],
  ['@section a b', '1: @section needs a name of letters, digits, "_" and "-": it has a b'],
  // Blocks
  ['\n@if a\n', '2: @if has no @endif'],
  ['@if a\n@foreach b in c\n', '2: @foreach has no @endforeach'],
  ["@layout 'b.html'\n@section a\n", '2: @section has no @endsection'],
  ['\n@endif', '2: @endif without @if'],
  ["@error 'a'\n", '1: @error has no @enderror'],
  ['\n@enderror', '2: @enderror without @error'],
  ["@error 'a'\n@endforeach", '2: @endforeach without @foreach: @error in line 1 is open'],
  ["@error 'a'\n@else\n@enderror", '2: @else without @if: @error in line 1 is open'],
  ['@if a\n@endforeach', '2: @endforeach without @foreach: @if in line 1 is open'],
  ['@else', '1: @else without @if'],
  ['@foreach a in b\n@elseif c\n', '2: @elseif without @if: @foreach in line 1 is open'],
  ['@if a\n@else\n@else\n@endif', '3: @else after @else: the @if is in line 1'],
  ['@if a\n@else\n@elseif b\n@endif', '3: @elseif after @else: the @if is in line 1'],
  // Layouts and sections
  ['\n@section a\n@endsection', '2: @section needs a @layout in the same file'],
  ["@layout 'l.html'\n@if a\n@section b\n", '3: @section must not be inside a block: @if in line 2 is open'],
  ["@if a\n@layout 'l.html'\n", '2: @layout must not be inside a block: @if in line 1 is open'],
  ["@layout 'l.html'\n@layout 'l.html'", '2: there is a @layout already, in line 1'],
  [
    "@layout 'l.html'\n@section a\n@endsection\n@section a\n@endsection",
    '4: there is a section "a" already, in line 2',
  ],
  [
    "@layout 'l.html'\n\n \n  lost text is here\n",
    '4: in a view with a @layout all must be in sections: the text "lost text is here" would be lost',
  ],
  ["@layout 'l.html'\n\n{{ a }}", '3: in a view with a @layout all must be in sections: this would be lost'],
  [
    "@layout 'l.html'\n@section a\n@endsection\n@section b\n@endsection\n",
    '4: section "b" would be lost: l.html has no @yield b',
    { 'l.html': '@yield a\n' },
  ],
]

for (const [view, message, files = {}] of mistakes) {
  test(`refuses ${JSON.stringify(view.slice(0, 60))} with its line: ${message}`, () => {
    const { views } = makeViews({ 'v.html': view, ...files })
    const prefix = (text: string) => text.replace(/^\^?/, '$&v.html:')
    const expected = typeof message === 'string' ? prefix(message) : new RegExp(prefix(message.source))
    assert.throws(() => views.check('v.html'), { name: 'ViewError', message: expected })
  })
}

test('counts lines after multi-line expressions and directives', () => {
  const { views } = makeViews({ 'v.html': '{{ `\n\n` }} {{ 1 }}\n@if true\n@endif\r\n\n{{\n2\n}}{{ ; }}' })
  assert.throws(() => views.check('v.html'), { message: "v.html:9: {{: Unexpected token ';'" })
})

test('accepts 100 blocks in each of many files that include each other', () => {
  const files: Record<string, string> = {}
  const text = (inner: string) => `${'@if yes\n'.repeat(100)}${inner}${'@endif\n'.repeat(100)}`
  for (let at = 0; at < 10; at++) files[`v${at}.html`] = text(at < 9 ? `@view 'v${at + 1}.html'\n` : 'innermost\n')
  const { views } = makeViews(files)
  assert.equal(views.render('v0.html', { yes: true }, {}), 'innermost\n')
})

test('reports that a view is nested too deeply for the engine', () => {
  const { views } = makeViews({ 'v.html': `{{ ${'('.repeat(100_000)}1${')'.repeat(100_000)} }}` })
  assert.throws(() => views.check('v.html'), { name: 'ViewError', message: /^v\.html:1: \{\{: Maximum call stack/ })
})

test('compiles a long line in linear time', () => {
  const { views } = makeViews({ 'v.html': '{{ a }}@@'.repeat(5000) })
  assert.equal(views.render('v.html', { a: 'x' }, {}), 'x@'.repeat(5000))
})
