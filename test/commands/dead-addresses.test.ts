import assert from 'node:assert/strict'
import { test } from 'node:test'
import { join } from 'node:path'
import type { Inspection } from '../../lib/application/application.ts'
import { DeadAddresses } from '../../lib/commands/dead-addresses.ts'
import { parsePattern } from '../../lib/routing/pattern.ts'
import { writeFiles } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Checks a file of an application with these routes. */
function problemsOf(file: string, source: string, { routes = {}, hasPanel = true, isComplete = true }: {
  routes?: Readonly<Record<string, string>>
  hasPanel?: boolean
  isComplete?: boolean
} = {}): string[] {
  const root = temporaryFolder()
  writeFiles(root, { [file]: source })
  const found: Inspection = {
    routes: Object.entries(routes).map(([name, url]) => ({
      record: { name, url, method: 'GET', action: 'a.mjs', middleware: '', scope: '' },
      pattern: parsePattern(url),
      system: false,
      target: () => assert.fail('no request is served'),
    })),
    problems: isComplete ? [] : [{ file: 'b.json', index: null, name: '', error: 'it is empty' }],
    formats: [],
    broken: [],
    incomplete: [],
    notes: [],
  }
  const addresses = new DeadAddresses(root, found, hasPanel)
  return file.endsWith('.html') ? addresses.inView(join(root, file)) : addresses.inModule(join(root, file))
}

test('the parameters of a literal are those of the route, as at run time', () => {
  const routes = { home: '/', note: '/notes/:id', file: '/files/:id/*path' }
  const rows: [call: string, ...reasons: string[]][] = [
    ["url('home')"],
    ["url('home', {})"],
    ["url('home', { id: 1 })", 'the route "home" (/) has no parameter "id"'],
    ["url('note')", 'the parameter "id" is missing'],
    ["url('note', { id })"],
    ["url('note', { id, 'a b': 1 })", 'the route "note" (/notes/:id) has no parameter "a b"'],
    ["url('note', given)"],
    ["url('file', { id: 1 })", 'the parameter "path" is missing'],
    ["url('file', { path: '' })", 'the parameter "id" is missing'],
    ["url('file', { id: 1, path: '' })"],
    ["redirect({ route: 'note' })", 'the parameter "id" is missing'],
    ["redirect({ route: 'note', params })"],
  ]
  for (const [call, ...reasons] of rows) {
    const shown = call.startsWith('url') ? /^url\('\w+'/.exec(call)?.[0].replaceAll("'", '"').concat(')') : 'redirect({ route: "note" })'
    assert.deepEqual(problemsOf('a.ts', `\n  ${call}`, { routes }), reasons.map((reason) => `a.ts:2:3: ${shown}: ${reason}`), call)
  }
})

test('knows the system routes that exist', () => {
  const source = "url('svc.ping'); url('svc.live'); url('svc.login')"
  assert.deepEqual(problemsOf('a.js', source), [])
  assert.deepEqual(problemsOf('a.js', source, { hasPanel: false }), ['a.js:1:35: url("svc.login"): no route has that name'])
})

test('reports no unknown name if a record or file has a problem, which may have that name', () => {
  const routes = { note: '/:id' }
  assert.deepEqual(problemsOf('a.js', "url('nowhere'); url('note')", { routes, isComplete: false }), ['a.js:1:17: url("note"): the parameter "id" is missing'])
})

test('finds the code of a view, with its place', () => {
  const rows: [view: string, ...places: string[]][] = [
    ["url('x') {{ url('x') }}", '1:13'],
    ["{{\n\n url('x')\n}}{!! url('x') !!}", '3:2', '4:7'],
    ["a\r\n  @if   url('x') === '}}'\n@elseif url('x')\n@endif", '2:9', '3:9'],
    ["@foreach { a } in [url('x')]\n@endforeach", '1:20'],
    ["@resource url('x')", '1:11'],
    ["@@if url('x')\n@media url('x')\n{{ '{{ url(\"x\") }}' }}\n{{ /* url('x') */ }}"],
    ["@layout 'x.html'\n@section a\n{{ url('x') }}\n@endsection", '3:4'],
    ["{{ url('x') }}\n@if\n"],
  ]
  for (const [view, ...places] of rows) {
    assert.deepEqual(problemsOf('v.html', view), places.map((place) => `v.html:${place}: url("x"): no route has that name`), view)
  }
})

test('ignores packages, declarations and files that cannot be read', () => {
  for (const file of ['node_modules/a/a.js', 'a.d.ts', 'a.d.mts']) assert.deepEqual(problemsOf(file, "url('x')"), [], file)
  const found: Inspection = { routes: [], problems: [], formats: [], broken: [], incomplete: [], notes: [] }
  const addresses = new DeadAddresses(temporaryFolder(), found, true)
  assert.deepEqual([...addresses.inModule('/nowhere/a.js'), ...addresses.inView('/nowhere/a.html')], [])
})

test('suggests a name for the first unknown names, and for each further use of them', () => {
  const source = Array.from({ length: 24 }, (_, at) => `url('note${at % 12}')`).join('\n')
  const problems = problemsOf('a.js', source, { routes: { note: '/' } })
  assert.equal(problems.length, 24)
  assert.equal(problems.filter((problem) => problem.endsWith('did you mean "note"?')).length, 20)
})
