/**
 * Views. The text of a template is never run, only its expressions are: text that is JavaScript comes out as it is, and a
 * function of this process that text and expressions name is never called.
 */
import assert from 'node:assert/strict'
import { compile } from '../../../lib/views/compile.ts'
import { ViewError } from '../../../lib/views/template.ts'
import { createRender, type Render } from '../../../lib/views/render.ts'
import type { Seeded } from '../../support/seeded.ts'
import { changed, pieces } from '../mutate.ts'
import type { Target } from '../target.ts'

const canary = 'fuzzCanary'
const hostile = [
  `"+${canary}()+"`, `'+${canary}()+'`, `\`+${canary}()+\``, `\${${canary}()}`, `";${canary}();//`, `*/${canary}();/*`, `\n${canary}()\n`,
  `\u2028${canary}()\u2029`, `\\";${canary}()//`, `\\u0022+${canary}()`, `<script>${canary}()</script>`, `})();${canary}();(()=>{`, `\r${canary}()`,
  `//# sourceMappingURL=${canary}`, '\\', '\\\\', '"', "'", '`', '$', '{', '}', '}}', '!!}', '<!--', '-->', '\0', '\ufeff', '\ud800', '\n', ' ',
]
const expressions = ['{{ a }}', '{!! a !!}', '{{ list.length }}', '{{ "}}" }}', '{{ `${a}` }}', `{{ '${canary}()' }}`, '{{ a /* }} */ }}']
const values: Readonly<Record<string, string>> = {
  '{{ a }}': '&lt;A&gt;', '{!! a !!}': '<A>', '{{ list.length }}': '2', '{{ "}}" }}': '}}', '{{ `${a}` }}': '&lt;A&gt;',
  [`{{ '${canary}()' }}`]: `${canary}()`, '{{ a /* }} */ }}': '&lt;A&gt;',
}
const marks = [
  '{{', '}}', '{!!', '!!}', '@@', '@', '\n@if ', '\n@else\n', '\n@endif\n', '\n@foreach x in list\n', '\n@endforeach\n', '\n@section s\n', '\n@endsection\n',
  '\n@yield s\n', '\n@csrf\n', '\n@resource a\n', '\n@elseif a\n', 'a', 'list', '(', ')', '[', ']', '=>', ',', '/', '/*', '*/', '.b', '?.c', 'x', `${canary}()`, '1',
]

/** Text and expressions that are whole: the page is known beforehand. */
export const viewText: Target = {
  name: 'view-text',
  share: 15,
  make: (seeded) => Array.from({ length: 1 + seeded.integer(8) }, () => seeded.pick(seeded.integer(3) === 0 ? expressions : hostile)),
  check(parts) {
    const source = parts.join('')
    const page = renderWatched(source)
    const text = parts.filter((part) => !(part in values)).join('')
    // A mark that only the parts together make is another template than the one that is known.
    if (/@|\{\{|\{!!/.test(text) || parts.some((part, at) => part in values && parts[at - 1]?.endsWith('{'))) return
    const expected = parts.map((part) => values[part] ?? part).join('')
    assert.equal(page, expected.startsWith('\ufeff') ? expected.slice(1) : expected)
  },
}

/** Any text: it compiles, or is refused with a line of it. */
export const viewMarks: Target = {
  name: 'view-marks',
  share: 15,
  make(seeded: Seeded) {
    const source = pieces(seeded, [...marks, ...hostile], 14)
    return [seeded.integer(3) === 0 ? changed(seeded, source, 2) : source]
  },
  check: ([source = '']) => void renderWatched(source),
}

/** Compiles and renders; undefined when the view was refused. */
function renderWatched(source: string): string | undefined {
  let called = false
  Reflect.set(globalThis, canary, () => (called = true))
  try {
    return makeRender(source)?.({ a: '<A>', list: [1, 2] }, { UCsrfToHtml: () => '', UResourceToHtml: () => '' })
  } catch (error) {
    assert.ok(error instanceof ViewError, String(error))
    return undefined
  } finally {
    Reflect.deleteProperty(globalThis, canary)
    assert.equal(called, false, 'text of a template was run')
  }
}

function makeRender(source: string): Render | undefined {
  try {
    return createRender(compile('/nowhere', 'v.html', () => source))
  } catch (error) {
    assert.ok(error instanceof ViewError, String(error))
    assert.ok(error.line >= 0 && error.line <= source.split('\n').length, error.message)
    return undefined
  }
}
