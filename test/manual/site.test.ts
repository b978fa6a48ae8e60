import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createSite } from '../../lib/manual/docs.ts'
import { headingIds, links, readPages } from '../support/markdown.ts'
import { root } from '../support/launch.ts'

const site = createSite(root)
const pages = readPages().filter(({ file }) => file !== 'AGENTS.md')
const open = (path: string): { type: string; text: string; status: number } => {
  const [type, body, status = 200] = site(new URL(path, 'http://localhost'))
  return { type, text: body.toString(), status }
}
const pathOf = (file: string): string => (file === 'docs/README.md' ? '/' : `/${file.replace(/\.md$/, '')}`)
const mainOf = (file: string): string => /<main[^]*?>\n([^]*)<p class="source">/.exec(open(pathOf(file)).text)?.[1] ?? ''
const lettersOf = (text: string): string => text.replace(/[^\p{L}\p{N}]/gu, '')
const unescaped = (text: string): string =>
  text.replace(/&(lt|gt|quot|amp|#39);/g, (_, name: string) => ({ lt: '<', gt: '>', quot: '"', amp: '&' })[name] ?? "'")

/** The letters and digits of a document, without what only marks or leads. */
function lettersOfSource(file: string): string {
  const syntax = /(`+)[^]*?\1|^<!--.*-->$|^\|[ |-]+\|$|!\[.*?\]\(.*?\)|\]\([^()\s]+\)|^ *\d{1,2}\. /gm
  const text = readFileSync(join(root, file), 'utf8').replace(syntax, (found, ticks?: string) => {
    return ticks === undefined ? '' : found.replace(/^```\w*/, '')
  })
  return lettersOf(text)
}

describe('the site', () => {
  it('shows every document with all its words, in their order', () => {
    for (const { file } of pages) {
      const html = mainOf(file).replace(/<details class="toc">.*?<\/details>/s, '')
      assert.equal(lettersOf(unescaped(html.replace(/<[^>]*>/g, ''))), lettersOfSource(file), file)
    }
  })

  it('leaves no Markdown over, and no HTML that it does not make', () => {
    const made = /^<\/?(?:h[1-6]|p|ul|ol|li|pre|code|table|thead|tbody|tr|th|td|div|a|img|strong|em|details|summary|wbr)[ >]/
    for (const { file } of pages) {
      const html = mainOf(file)
      assert.deepEqual([...html.matchAll(/<[^>]*>/g)].filter(([tag]) => !made.test(tag)).map(String), [], file)
      const text = html.replace(/<code>[^]*?<\/code>/g, '').replace(/<[^>]*>/g, '')
      assert.equal(/.*(?:\*\*|\*\w|`|\]\(|^ *\||^ *#{1,6} |^ *- |&lt;!--).*/m.exec(text)?.[0], undefined, file)
    }
  })

  it('has the ids of all headings, and resolves every link and picture', () => {
    const dead: string[] = []
    const idsOf = (html: string): Set<string> => new Set([...html.matchAll(/ id="([^"]*)"/g)].map(([, id = '']) => unescaped(id)))
    const known = new Map<string, Set<string> | undefined>()
    for (const page of pages) {
      const html = mainOf(page.file)
      assert.deepEqual([...idsOf(html)], [...headingIds(page)], page.file)
      const targets = [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, target = '']) => unescaped(target))
      assert.ok(targets.length >= links(page).length, page.file)
      for (const target of targets.filter((each) => !/^https?:/.test(each))) {
        const { pathname, hash } = new URL(target, `http://localhost${pathOf(page.file)}`)
        if (!known.has(pathname)) {
          const { status, text } = open(pathname)
          known.set(pathname, status === 200 ? idsOf(text) : undefined)
        }
        if (!known.get(pathname)?.has(hash.slice(1)) && (hash !== '' || known.get(pathname) === undefined)) {
          dead.push(`${page.file}: ${target}`)
        }
      }
    }
    assert.deepEqual(dead, [])
  })

  it('has every document of docs/ in the navigation, and marks the open one', () => {
    for (const { file } of pages.filter((page) => page.file.startsWith('docs/') && page.file !== 'docs/README.md')) {
      assert.match(open(pathOf(file)).text, new RegExp(`<a href="${pathOf(file)}" aria-current="page">`), file)
    }
  })

  it('begins with what an author, an operator and an auditor need, five links each', () => {
    const lists = [...mainOf('docs/README.md').matchAll(/<h2[^>]*>([^<]*)<\/h2>\n+<ol>(.*?)<\/ol>/gs)]
    assert.deepEqual(
      lists.map(([, title, items = '']) => [title, items.split('<li>').length - 1]),
      [['You write an application', 5], ['You run a server', 5], ['You evaluate or audit it', 6]],
    )
  })

  it('gives the Markdown of each page, and the other files of docs/', () => {
    assert.deepEqual(open('/docs/forms.md').text.slice(0, 8), '# Forms\n')
    assert.equal(open('/docs/README.md').type, 'text/plain; charset=utf-8')
    assert.equal(open('/docs/openapi.json').type, 'application/json')
    assert.equal(open('/docs/images/board.png').type, 'image/png')
    assert.equal(open('/docs/deploy/svc.service').type, 'text/plain; charset=utf-8')
  })

  it('serves nothing else', () => {
    const others = [
      ...['/package.json', '/docs/../package.json', '/docs/%2e%2e/package.json', '/docs/..%2fpackage.json', '/lib/app.ts'],
      ...['/docs', '/docs/', '/docs/forms/', '/docs//forms', '/docs/forms.md%00', '/etc/passwd', '/__proto__'],
    ]
    for (const path of others) assert.equal(open(path).status, 404, path)
  })

  it('has an llms.txt whose links lead to Markdown, each with a line about it', () => {
    const { type, text } = open('/llms.txt')
    assert.equal(type, 'text/plain; charset=utf-8')
    assert.match(text, /^# svc\n\n> svc is a web application server [^\n]+\n\n## You write an application\n\n- \[Getting started\]\(\/docs\/getting-started\.md\): /)
    const items = text.split('\n').filter((line) => !/^(?:#.*|>.*|)$/.test(line))
    for (const item of items) {
      const [, target = ''] = /^- \[[^\]]+\]\((\/[\w./-]+\.md)\)(?:: \S.*)?$/.exec(item) ?? []
      assert.match(open(target).text, /^(?:<!--.*-->\n)?# /, item)
    }
    assert.equal(new Set(items).size, items.length)
    assert.ok(items.length > 60)
  })
})

describe('the search', () => {
  const find = (query: string): { where: string; snippet: string }[] => {
    const { text } = open(`/search?q=${encodeURIComponent(query)}`)
    return [...text.matchAll(/<li><a href="([^"]+#[^"]*)">[^<]*<\/a><br>(.*?)<\/li>/gs)].map(([, where = '', snippet = '']) => ({ where, snippet }))
  }

  const messages: readonly (readonly [message: string, where: string])[] = [
    ['[2026-11-20 12:21:45.303] [INFO ] [server] the TLS handshake of 10.0.0.1 failed: it sent plain HTTP', '/docs/troubleshooting'],
    ['[WARN ] [server] node a:8080 is down: no heartbeat for 5 s', '/docs/troubleshooting'],
    ['[ERROR] [error] POST /buy (buy): Cannot set cookie __Host-a: the prefix __Host- needs secure: the request came by HTTP', '/docs/troubleshooting'],
    ['app_key is empty: a random one is used, and forms end with the process', '/docs/troubleshooting'],
    ['Cannot load /srv/app/svc.json: server.port must be 0 to 65535: it is "8080" (line 4)', '/docs/troubleshooting'],
  ]
  for (const [message, where] of messages) {
    it(`finds "${message.slice(0, 60)}..." by the whole message`, () => {
      const [first] = find(message)
      assert.equal(first?.where.split('#')[0], where)
    })
  }

  it('ranks a title above a heading, and a heading above text', () => {
    assert.equal(find('views')[0]?.where, '/docs/views#views')
    assert.equal(find('flash messages')[0]?.where, '/docs/context#flash-messages')
    assert.match(find('certificates')[0]?.where ?? '', /#certificates$/)
  })

  const questions: readonly (readonly [question: string, where: string])[] = [
    ['serve a css file', '/docs/routes-and-actions#static-files'],
    ['static files', '/docs/routes-and-actions#static-files'],
    ['test with own database', '/docs/testing#files-and-databases'],
    ['change the error message of a field', '/docs/configuration#setupvalidate'],
    ['url params in a view', '/docs/context#what-views-see'],
    ['session secret', '/docs/context#sessions'],
    ['body parser', '/docs/context#the-body'],
    ['how do I redirect', '/docs/context#replies'],
    ['set cookie', '/docs/context#replies'],
    ['read the query', '/docs/context#the-request'],
    ['hash a password', '/docs/routes-and-actions#passwords'],
    ['environment variables', '/docs/configuration#settings-of-the-application'],
    ['404 page', '/docs/errors#pages-of-your-own'],
    ['include a partial', '/docs/views#directives'],
    ['the port is in use', '/docs/troubleshooting#messages-of-commands-and-of-the-start'],
    ['hot reload', '/docs/routes-and-actions#saving-a-file-in-dev'],
    ['log out', '/docs/recipes/sign-in#sign-in-from-scratch'],
    ['send an email', '/docs/recipes/outbox#mail-with-an-outbox'],
    ['cron job', '/docs/jobs#schedules'],
    ['cors', '/docs/configuration#setupcors'],
    ['layouts', '/docs/views#layouts'],
    ['migrate from express', '/docs/recipes/from-express#from-express'],
  ]
  for (const [question, where] of questions) {
    it(`has the answer to "${question}" among its first three sections`, () => {
      const first = find(question).slice(0, 3).map((hit) => hit.where)
      assert.ok(first.includes(where), first.join(' '))
    })
  }

  it('marks the words in what it shows, and escapes it', () => {
    for (const { snippet } of find('script nonce style')) {
      assert.match(snippet, /<mark>(?:script|nonce|style)<\/mark>/i)
      assert.doesNotMatch(snippet.replace(/<\/?mark>/g, ''), /[<>]/)
    }
    assert.match(open('/search?q=%22%3E%3Cscript%3E').text, /value="&quot;&gt;&lt;script&gt;"/)
  })

  it('says what to do when it finds nothing or is not asked', () => {
    assert.match(open('/search?q=qwertzuiop').text, /Nothing was found/)
    for (const path of ['/search', '/search?q=', '/search?q=+...+']) assert.equal(find(path.slice(10)).length, 0)
    assert.match(open('/search').text, /paste a message/)
  })

  it('answers a query of any length at once', () => {
    const started = performance.now()
    for (const piece of ['a ', 'a.', '(', '\\', '...', 'a-', 'word ']) find(piece.repeat(20_000))
    assert.ok(performance.now() - started < 10_000)
  })
})
