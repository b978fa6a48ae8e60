/**
 * The checks of docs/recipes/from-*.md: requests and their expected results, the same for the application before the
 * move and the one after. The checks of a table run in order, as one visitor with cookies.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { writeFiles } from './application.ts'
import { recipeFolder, startRecipeIn, type Recipe } from './recipe.ts'
import { request, type Answer } from './request.ts'
import { Visitor, type Fields } from './visitor.ts'

/** A request and its expected result. Members that are left out are not checked. */
export interface PortedCheck {
  readonly name: string
  /** A GET of this path. */
  readonly get?: string
  /** A form of the page `/` is filled in and sent to this path. */
  readonly form?: string
  readonly fields?: Fields
  /** The content of the form's file `picture`. */
  readonly picture?: Uint8Array
  /** JSON is sent to this path, by a program without cookies. */
  readonly post?: string
  readonly body?: unknown
  /** Begins as a visitor who has no cookies. */
  readonly asNew?: true
  readonly status: number
  readonly location?: string
  readonly type?: string
  /** Texts that are in the body, or match it. */
  readonly shows?: readonly (string | RegExp)[]
  readonly hides?: readonly (string | RegExp)[]
  /** The members that the JSON has at least. */
  readonly json?: object
  /** An attribute of the first cookie that is set. */
  readonly cookie?: RegExp
  /** Requests the first picture of the page that the body is, and expects these bytes. */
  readonly showsPicture?: Uint8Array
  /** Checked after the move only: the server in front of the application before does this. */
  readonly afterOnly?: true
}

/** The smallest picture that every program can read: 1 by 1 pixels. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** The response to a form, right or wrong: the page shows what came of it. */
const leadsBack = { status: 303, location: '/' }

const pageOfBooks: readonly PortedCheck[] = [
  {
    name: 'the page, and its cookie',
    get: '/',
    status: 200,
    type: 'text/html',
    shows: ['Emma, 474 pages', 'Visits: 1<'],
    cookie: /; HttpOnly/,
  },
  { name: 'a second visit', get: '/', status: 200, shows: ['Visits: 2<'] },
  { name: 'a form with a wrong field', form: '/books', fields: { title: '<b>"', pages: '0' }, ...leadsBack },
  {
    name: 'the errors and the input',
    get: '/',
    status: 200,
    shows: [
      /name="title" value="&lt;b&gt;&(?:quot|#34);"/,
      /name="pages" value="0"><\/label>\s+<small>[^<]+</,
      'Visits: 4<', // The form was opened for the third.
    ],
    hides: [/name="title"[^>]*><\/label>\s+<small>[^<]+</, '<b>'],
  },
  { name: 'the errors once', get: '/', status: 200, hides: [/<small>[^<]+</, '&lt;b'] },
  { name: 'an empty form', form: '/books', fields: { title: '', pages: '' }, ...leadsBack },
  { name: 'the errors of both fields', get: '/', status: 200, shows: [/<small>[^<]+<[^]*<small>[^<]+</] },
  { name: 'a right form', form: '/books', fields: { title: 'Persuasion & more', pages: '249' }, ...leadsBack },
  {
    name: 'the message and the entry',
    get: '/',
    status: 200,
    shows: [/<p role="status">Persuasion &amp; more was added\.</, '<li>Persuasion &amp; more, 249 pages</li>'],
  },
  { name: 'the message once', get: '/', status: 200, shows: [/<p role="status"></, '249 pages'], hides: ['was added'] },
  { name: 'another visitor', asNew: true, get: '/', status: 200, shows: ['Visits: 1<', '249 pages'] },
  { name: 'no such page', get: '/nowhere', status: 404, type: 'text/html', shows: ['This page is not in the library.'] },
]

const apiOfBooks = (first: number): readonly PortedCheck[] => [
  { name: 'an entry', get: '/api/books/1', status: 200, type: 'application/json', json: { title: 'Emma', pages: 474 } },
  { name: 'no entry', get: '/api/books/99', status: 404, type: 'application/json', json: { error: 'no_book' } },
  {
    name: 'JSON with wrong members',
    post: '/api/books',
    body: { title: '', pages: 0 },
    status: 422,
    json: { error: 'invalid' },
    shows: [/"title":.+"pages":/],
  },
  { name: 'JSON without members', post: '/api/books', body: {}, status: 422, json: { error: 'invalid' } },
  {
    name: 'right JSON, whose other members are dropped',
    post: '/api/books',
    body: { title: 'Sanditon', pages: 60, id: 7 },
    status: 201,
    location: `/api/books/${first}`,
    json: { id: first, title: 'Sanditon', pages: 60 },
  },
  { name: 'the entry at its address', get: `/api/books/${first}`, status: 200, json: { title: 'Sanditon' } },
]

const queries: readonly PortedCheck[] = [
  { name: 'the list', get: '/api/books', status: 200, shows: ['"Emma"', '"Sanditon"'] },
  { name: 'a page of the list', get: '/api/books?page=2', status: 200, shows: [/^\[\]$/] },
  { name: 'a wrong query', get: '/api/books?page=0', status: 422, json: { error: 'invalid' } },
]

const guests: readonly PortedCheck[] = [
  {
    name: 'the page with its header and footer',
    get: '/',
    status: 200,
    type: 'text/html',
    shows: [/<title>\s*Guests\s*<\/title>/, /<nav>[^]*<main>[^]*Visits: 1<[^]*<\/main>\s*<footer>The village hall/],
    cookie: /; HttpOnly/,
  },
  {
    name: 'another page with the same',
    get: '/about.php',
    status: 200,
    shows: [/<title>\s*About\s*<\/title>/, /<nav>[^]*Everyone may come\.[^]*<footer>/],
  },
  { name: 'a form with a wrong field', form: '/', fields: { name: '<b>', seats: '10' }, ...leadsBack },
  {
    name: 'the error and the input',
    get: '/',
    status: 200,
    shows: ['name="name" value="&lt;b&gt;"', /name="seats" value="10"><\/label>\s+<small>Must be [^<]+</],
    hides: [/name="name"[^>]*><\/label>\s+<small>[^<]+</, '<b>'],
  },
  { name: 'the error once', get: '/', status: 200, hides: [/<small>[^<]+</, '&lt;b'] },
  { name: 'a form without a name', form: '/', fields: { name: ' ', seats: '2' }, ...leadsBack },
  { name: 'its error', get: '/', status: 200, shows: [/name="name"[^>]*><\/label>\s+<small>Required</] },
  { name: 'a false picture', form: '/', fields: { name: 'Ann', seats: '2' }, picture: Buffer.from('<a>'), ...leadsBack },
  { name: 'its error', get: '/', status: 200, shows: ['Must be a PNG picture', 'value="Ann"'], hides: ['<li>'] },
  { name: 'a form without a picture', form: '/', fields: { name: 'Ann & Bob', seats: '2' }, ...leadsBack },
  {
    name: 'the message and the entry',
    get: '/',
    status: 200,
    shows: ['<p role="status">Ann &amp; Bob is on the list.<', '<li>Ann &amp; Bob, 2 seats'],
    hides: ['<img'],
  },
  { name: 'the message once', get: '/', status: 200, shows: ['<li>Ann &amp; Bob'], hides: ['is on the list'] },
  { name: 'a form with a picture', form: '/', fields: { name: 'Cid', seats: '1' }, picture: png, ...leadsBack },
  { name: 'the picture', get: '/', status: 200, showsPicture: png },
  { name: 'another visitor', asNew: true, get: '/', status: 200, shows: ['Visits: 1<', '<li>Cid, 1 seats'] },
  { name: 'no such page', get: '/nowhere.php', status: 404 },
]

const behindUnit: readonly PortedCheck[] = [
  { name: 'a count', get: '/api/visits', status: 200, json: { visits: 1 }, cookie: /; HttpOnly/ },
  { name: 'a count that goes on', get: '/api/visits', status: 200, json: { visits: 2 } },
  { name: 'the count of another', asNew: true, get: '/api/visits', status: 200, json: { visits: 1 } },
  ...apiOfBooks(2),
  { name: 'no such address', get: '/api/nothing', status: 404, type: 'application/json', json: { error: 'not_found' } },
  { name: 'a redirect of the server', get: '/old/a/b', status: 301, location: '/new/', afterOnly: true },
  { name: 'a file', get: '/', status: 200, shows: ['Welcome'], afterOnly: true },
]

/** The checks of a page, by the name of its recipe. */
export const portedChecks: Readonly<Record<string, readonly PortedCheck[]>> = {
  'from-express': [...pageOfBooks, ...apiOfBooks(3)],
  'from-fastify': [...pageOfBooks, ...apiOfBooks(3), ...queries],
  'from-unit': behindUnit,
  'from-php': guests,
}

/** Starts the application after the move; it ends with the test. Fails if the server has warnings. */
export function startPorted(t: Pick<TestContext, 'after'>, name: string): Promise<Recipe> {
  const folder = recipeFolder(name)
  if (name === 'from-unit') writeFiles(folder, { 'www/index.html': 'Welcome' })
  return startRecipeIn(t, folder)
}

/**
 * Makes the requests of a table to a running application.
 * @param side whether it is the application before or after the move
 * @throws AssertionError that names the check and shows the body
 */
export async function runPortedChecks(
  checks: readonly PortedCheck[],
  url: string,
  side: 'before' | 'after',
): Promise<void> {
  let visitor = new Visitor(url)
  for (const check of checks) {
    if (check.asNew) visitor = new Visitor(url)
    if (check.afterOnly && side === 'before') continue
    const answer = await send(check, visitor)
    const about = `${check.name}: ${answer.status} ${JSON.stringify(answer.headers)}\n${answer.text}`
    compare(check, answer, about)
    if (check.showsPicture !== undefined) {
      const path = /<img src="([^"]+)"/.exec(answer.text)?.[1] ?? assert.fail(about)
      const picture = await visitor.get(path)
      assert.deepEqual([picture.status, picture.headers['content-type']], [200, 'image/png'], about)
      assert.ok(picture.bytes.equals(check.showsPicture), about)
    }
  }
}

async function send(check: PortedCheck, visitor: Visitor): Promise<Answer> {
  if (check.get !== undefined) return visitor.get(check.get)
  if (check.form !== undefined) {
    const headers = { 'sec-fetch-site': 'same-origin', referer: `${visitor.url}/` }
    const file = check.picture && new File([Buffer.from(check.picture)], 'a.png', { type: 'image/png' })
    return visitor.send(await visitor.form('/', check.form), check.fields, file, headers)
  }
  const body = JSON.stringify(check.body)
  return request(`${visitor.url}${check.post}`, { body, headers: { 'content-type': 'application/json' } })
}

function compare(check: PortedCheck, { status, headers, text, json }: Answer, about: string): void {
  const { shows = [], hides = [] } = check
  const has = (part: string | RegExp): boolean => (typeof part === 'string' ? text.includes(part) : part.test(text))
  assert.equal(status, check.status, about)
  if (check.location !== undefined) assert.equal(headers.location, check.location, about)
  if (check.type !== undefined) assert.equal(headers['content-type']?.split(';')[0], check.type, about)
  if (check.cookie !== undefined) assert.match(headers['set-cookie']?.[0] ?? '', check.cookie, about)
  assert.deepEqual(shows.filter((wanted) => !has(wanted)), [], about)
  assert.deepEqual(hides.filter(has), [], about)
  if (check.json !== undefined) {
    const found = json() as Record<string, unknown>
    assert.deepEqual({ ...found, ...check.json }, found, about)
  }
}
