// The seeded checks of templates, for any number of them.
import assert from 'node:assert/strict'
import { compile } from '../../lib/views/compile.ts'
import { ViewError } from '../../lib/views/template.ts'
import { createRender } from '../../lib/views/render.ts'
import { Seeded } from '../support/seeded.ts'

const fragments = [
  '{{', '}}', '{!!', '!!}', '@@', '@', '{', '}', '(', ')', '[', ']', '"', "'", '`', '${', '\\', '/', '//', '/*', '*/',
  '\n', '\r\n', ' ', ',', ';', '=>', '...', '<!--', '-->', '\u2028', '\ufeff', '\0', '😀', '\ud800', '&', '<',
  '\n@if ', '\n@elseif a\n', '\n@else\n', '\n@endif\n', '\n@foreach x in ', '\n@foreach [x, {a = 1}] in ', '\n@foreach {', '\n@endforeach\n', "\n@view 'v.html'\n",
  "\n@layout 'v.html'\n", '\n@section s\n', '\n@endsection\n', '\n@yield s\n', '\n@csrf\n', '\n@resource ', "\n@error 'a'\n", '\n@enderror\n',
  'a', 'x', '1', '.b', '?.c', 'list', 'typeof ', 'await ', 'yield ', 'eval', 'import', 'function ', 'class ', 'svc$out',
]

function randomTemplate(seeded: Seeded): string {
  return Array.from({ length: seeded.integer(30) }, () => seeded.pick(fragments)).join('')
}

/** Joins complete blocks and expressions, so that most templates compile. */
function wholeTemplate(seeded: Seeded, depth = 0): string {
  const expressions = ['a', 'list.length', '"}}" + a', '`${a}}`', '{b: [a]}.b', 'list.map((x) => x + a).join()', 'none']
  const expression = () => seeded.pick(expressions)
  const inner = () => (depth < 3 ? wholeTemplate(seeded, depth + 1) : 'text')
  const pieces = [
    () => seeded.pick(['text', '<p>', '@@', '\n', ' @x ', '"', '\\', '${a}']),
    () => `{{ ${expression()} }}`,
    () => `{!! ${expression()} !!}`,
    () => `\n@if ${expression()}\n${inner()}\n@else\n${inner()}\n@endif\n`,
    () => `\n@foreach x in list\n{{ x }}${inner()}\n@endforeach\n`,
    () => `\n@foreach {x = ${expression()}} in [{ x: a }, {}]\n{{ x }}${inner()}\n@endforeach\n`,
    () => `\n@error a\n{{ message }}${inner()}\n@enderror\n`,
  ]
  return Array.from({ length: seeded.integer(6) }, () => seeded.pick(pieces)()).join('')
}

/** Compiles a template without includes. */
export function compileAlone(text: string) {
  return compile('/nowhere', 'v.html', () => text)
}

/** Compiles any text: it compiles or is a ViewError within its lines. */
export function checkAnyText(rounds: number): void {
  const seeded = new Seeded(1)
  let compiled = 0
  for (let round = 0; round < rounds; round++) {
    const text = randomTemplate(seeded)
    try {
      createRender(compileAlone(text))
      compiled++
    } catch (error) {
      assert.ok(error instanceof ViewError, `${JSON.stringify(text)}: ${String(error)}`)
      assert.ok(error.line >= 1 && error.line <= text.split('\n').length, `${JSON.stringify(text)}: ${error.message}`)
    }
  }
  assert.ok(compiled > rounds / 60, `${compiled} compiled`)
}

/** Compiles whole templates: they render or name a line. */
export function checkWholeTemplates(rounds: number): void {
  const seeded = new Seeded(3)
  let rendered = 0
  for (let round = 0; round < rounds; round++) {
    const text = wholeTemplate(seeded)
    const render = createRender(compileAlone(text))
    try {
      render({ a: 'A', list: [1, 2] }, { errorsOf: () => ['wrong'] })
      rendered++
    } catch (error) {
      assert.ok(error instanceof ViewError && error.message.endsWith(': unknown name "none"'), String(error))
      assert.ok(text.split('\n')[error.line - 1]?.includes('none'), `${JSON.stringify(text)}: ${error.message}`)
    }
  }
  assert.ok(rendered > 0.3 * rounds, `${rendered} rendered`)
}
