import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Markdown, textOf } from '../../lib/manual/markdown.ts'

const render = (text: string): string => new Markdown(text, (target) => `/to/${target}`).html.trim().replace(/\n+/g, '\n')

describe('Markdown', () => {
  const rows: readonly (readonly [what: string, text: string, html: string])[] = [
    ['a paragraph of several lines', 'one\ntwo\n\nthree', '<p>one\ntwo</p>\n<p>three</p>'],
    ['a heading ends a paragraph', 'one\n## Two `x`', '<p>one</p>\n<h2 id="two-x">Two <code>x</code></h2>'],
    ['emphasis', '**a `*` b** and *c*, 2 * 3 * 4', '<p><strong>a <code>*</code> b</strong> and <em>c</em>, 2 * 3 * 4</p>'],
    ['code that has backquotes', 'as `` `a` `` is', '<p>as <code>`a`</code> is</p>'],
    ['code over a line end', 'as `a\nb` is', '<p>as <code>a\nb</code> is</p>'],
    ['no syntax in code', '`**a** [b](c)`', '<p><code>**a** [b](c)</code></p>'],
    ['a link with code, a picture', '[the `a[0]` of](x.md#y) ![A board](b.png)', '<p><a href="/to/x.md#y">the <code>a[0]</code> of</a> <img src="/to/b.png" alt="A board"></p>'],
    ['brackets that are no link', '## [0.9.0] - 2026', '<h2 id="090---2026">[0.9.0] - 2026</h2>'],
    ['a tight list', '- one\n  more\n- two', '<ul><li>one\nmore</li><li>two</li></ul>'],
    ['a nested list', '1. one\n   - a\n   - b\n2. two', '<ol><li>one\n<ul><li>a</li><li>b</li></ul></li><li>two</li></ol>'],
    [
      'a list with blank lines and code',
      '1. one\n\n   ```sh\n   a  b\n\n   c\n   ```\n\n   more\n\n2. two\n\nend',
      '<ol><li><p>one</p>\n<pre tabindex="0"><code>a  b\nc</code></pre>\n<p>more</p></li><li><p>two</p></li></ol>\n<p>end</p>',
    ],
    [
      'a table with escaped bars',
      '| | `a` |\n| --- | --- |\n| `x \\| y` | [z](z.md) |\n\nend',
      '<table><thead><tr><td></td><th scope="col"><code>a</code></th></tr></thead><tbody>' +
        '<tr><td><code>x | y</code></td><td><a href="/to/z.md">z</a></td></tr></tbody></table>\n<p>end</p>',
    ],
    [
      'a table of three columns, which scrolls where the screen is narrow',
      '| a | b | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |',
      '<div class="wide" tabindex="0"><table><thead><tr><th scope="col">a</th><th scope="col">b</th><th scope="col">c</th></tr></thead>' +
        '<tbody><tr><td>1</td><td>2</td><td>3</td></tr></tbody></table></div>',
    ],
    ['places for line breaks in long names', '`log.max_size_mb` `/svc-status` `127.0.0.1` `.mjs`', '<p><code>log.<wbr>max_<wbr>size_<wbr>mb</code> <code>/svc-status</code> <code>127.0.0.1</code> <code>.mjs</code></p>'],
    ['places for line breaks between members of JSON', '`{"a":1,"b":2}`', '<p><code>{&quot;a&quot;:1,<wbr>&quot;b&quot;:2}</code></p>'],
    ['a comment', '<!-- made -->\n# A', '<h1 id="a">A</h1>'],
    ['HTML as text', '<script>alert(1)</script> & `<b>`', '<p>&lt;script&gt;alert(1)&lt;/script&gt; &amp; <code>&lt;b&gt;</code></p>'],
    ['HTML in code', '```html\n<b class="x">\n```', '<pre tabindex="0"><code>&lt;b class=&quot;x&quot;&gt;</code></pre>'],
    ['HTML in a link', '[<i>](x"y.md)', '<p><a href="/to/x&quot;y.md">&lt;i&gt;</a></p>'],
    ['HTML in a heading', '# <i>', '<h1 id="i">&lt;i&gt;</h1>'],
  ]
  for (const [what, text, html] of rows) it(`renders ${what}`, () => assert.equal(render(text), html))

  it('numbers headings of the same text, and keeps the blocks of each', () => {
    const { sections } = new Markdown('# A\none\n\n- two\n\n## New\n\n## New\n\n| x |\n| - |\n| 1 |', String)
    assert.deepEqual(sections.map(({ id, level }) => [id, level]), [['a', 1], ['new', 2], ['new-1', 2]])
    assert.deepEqual(sections.map(({ blocks }) => blocks.map(textOf)), [['one', 'two'], [], ['1']])
  })

  it('takes time that grows with the text alone', () => {
    for (const piece of ['**', '*a', '`', '[', '[a](', '![', '``a`', '| ']) {
      const started = performance.now()
      render(piece.repeat(2000))
      assert.ok(performance.now() - started < 2000, piece)
    }
  })
})
