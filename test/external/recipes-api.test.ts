// docs/recipes/json-api.md with typed-client.md and contract-test.md: the API is described, its client is generated,
// compiled and run, and its tests compare each response with the description. The packages lie in `test/typed-client`.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { writeFiles } from '../support/application.ts'
import { optionsOfTarget, root, runLauncher } from '../support/launch.ts'
import { shownFiles, type Page } from '../support/markdown.ts'
import { createDocumentCheck } from '../support/openapi.ts'
import { recipeFolder, recipePage, startRecipe, startRecipeIn } from '../support/recipe.ts'
import { request } from '../support/request.ts'

const packages = join(root, 'test/typed-client/node_modules')
const clientPage = recipePage('typed-client')
const contractPage = recipePage('contract-test')

/** The used part of a description. */
interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
}

/** The function of the page, whose clients throw AssertionError. */
type CreateContract = (document: Description) => {
  readonly untested: ReadonlySet<string>
  client(client: object): Readonly<Record<string, (path: string) => Promise<Response>>>
}

async function run(args: readonly string[], cwd: string): Promise<{ status: number; output: string }> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const child = spawn(process.execPath, args, { cwd, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  const [status] = (await once(child, 'close')) as [number]
  return { status, output }
}

async function descriptionOf(url: string): Promise<Description> {
  return (await request(`${url}/api/openapi.json`)).json() as Description
}

/** Makes the folder of a client of a server, with its types. */
async function makeClient(folder: string, url: string, description: Description): Promise<string> {
  const { 'client/tasks.ts': code = '', ...others } = shownFiles(clientPage)
  const files = { ...others, 'client/tasks.ts': code.replace('http://localhost:8080', url) }
  writeFiles(folder, { ...files, 'openapi.json': description })
  const client = join(folder, 'client')
  const command = [join(packages, 'openapi-typescript/bin/cli.js'), '../openapi.json', '--output', 'api.d.ts']
  const { status, output } = await run(command, client)
  assert.equal(status, 0, output)
  return client
}

/** Compiles a client, with the TypeScript of its package or with that of the server, which is five times as fast. */
function compile(client: string, modules = join(root, 'node_modules')): Promise<{ status: number; output: string }> {
  return run([join(modules, 'typescript/bin/tsc')], client)
}

function testContract(folder: string): Promise<{ status: number; output: string }> {
  const name = process.env['SVC_TEST_TARGET'] === 'dist' ? 'dist/register.js' : 'lib/register.ts'
  const options = [...optionsOfTarget(), '--import', pathToFileURL(join(root, name)).href]
  return run([...options, '--test', '--test-reporter=tap', 'test/tasks.test.mjs'], folder)
}

/** The block of a page with this beginning. */
function blockOf(page: Page, beginning: string): string {
  const block = page.blocks.find(({ text }) => text.startsWith(beginning))
  assert.ok(block, `${page.file}: no block begins with ${beginning}`)
  return block.text
}

/** Makes the application with its contract test. */
function applicationFolder(change?: (text: string) => string): string {
  const folder = recipeFolder('json-api', change)
  writeFiles(folder, shownFiles(contractPage))
  symlinkSync(packages, join(folder, 'node_modules'))
  return folder
}

describe('the recipes of an API', () => {
  let folder: string
  let url: string
  let description: Description
  let stop: () => Promise<void> = () => Promise.resolve()
  before(async () => {
    assert.ok(existsSync(packages), 'openapi-typescript is not installed: run `npm ci --prefix test/typed-client`')
    folder = applicationFolder()
    const application = await startRecipeIn({ after: (end) => (stop = end as typeof stop) }, folder)
    url = application.url
    description = await descriptionOf(url)
  })
  after(() => stop())

  it('describe it as valid OpenAPI 3.1, by a command and by a route', async (t) => {
    const printed = await runLauncher(t, ['openapi'], { cwd: folder })
    assert.deepEqual([printed.status, printed.stderr], [0, ''])
    assert.deepEqual(JSON.parse(printed.stdout), description)
    assert.deepEqual((await createDocumentCheck())(description), [])
    assert.deepEqual(Object.keys(description.paths), ['/api/tasks', '/api/tasks/{id}'])
  })

  it('have a client that compiles, and calls every operation', async () => {
    const client = await makeClient(folder, url, description)
    assert.deepEqual(await compile(client, packages), { status: 0, output: '' })
    const command = '$ node dist/tasks.js\n'
    const shown = blockOf(clientPage, command).slice(command.length)
    assert.deepEqual(await run(['dist/tasks.js'], client), { status: 0, output: shown })
    const code = shownFiles(clientPage)['client/tasks.ts'] ?? ''
    for (const [path, item] of Object.entries(description.paths)) {
      for (const method of Object.keys(item)) {
        assert.ok(code.includes(`api.${method.toUpperCase()}('${path}'`), `${method} ${path}`)
      }
    }
  })

  const changes = [
    ['a member has another name', (text: string) => text.replaceAll('title:', 'text:'), 'tasks.ts(7,21)'],
    ['an operation is gone', (text: string) => text.replace(/.*"task\.remove".*\n/, ''), 'tasks.ts(22,34)'],
  ] as const
  for (const [what, change, beginning] of changes) {
    it(`have a client that does not compile when ${what}`, async (t) => {
      const changed = await startRecipe(t, 'json-api', change)
      symlinkSync(packages, join(changed.folder, 'node_modules'))
      const client = await makeClient(changed.folder, changed.url, await descriptionOf(changed.url))
      const { status, output } = await compile(client)
      assert.notEqual(status, 0)
      const shown = blockOf(clientPage, beginning).split('\n')
      const printed = output.split('\n').map((line, at) => {
        const expected = shown[at] ?? ''
        return expected.endsWith('...') ? `${line.slice(0, expected.length - 3)}...` : line
      })
      assert.deepEqual(printed, shown)
    })
  }

  it('have a test of the contract that passes, and fails as shown for a reply that is not declared', async () => {
    const passed = await testContract(folder)
    assert.equal(passed.status, 0, passed.output)
    assert.match(passed.output, /^# pass 3$/m)
    const [, wrong = ''] = /returned `(json\([^`]+\))`/.exec(contractPage.prose) ?? []
    const broken = applicationFolder((text) => text.replace('json(tasks.get(id), 201)', () => wrong))
    const failed = await testContract(broken)
    assert.equal(failed.status, 1, failed.output)
    assert.ok(failed.output.includes(blockOf(contractPage, 'post /').trimEnd()), failed.output)
  })

  it('compare status, content type and body of each response with its operation', async () => {
    const page = pathToFileURL(join(folder, 'test/contract.mjs')).href
    const { createContract } = (await import(page)) as { createContract: CreateContract }
    const html = { headers: { 'content-type': 'text/html' } }
    const task = { id: '1', title: 'a', done: false }
    const rows: readonly (readonly [call: string, response: Response, problem?: RegExp])[] = [
      ['get /api/tasks', Response.json([task])],
      ['get /api/tasks?done=true', Response.json([])],
      ['get /api/tasks/1', Response.json(task)],
      ['get /api/tasks/1', Response.json({ error: 'no_task', detail: 'There is no task 1.' }, { status: 404 })],
      ['post /api/tasks', Response.json({ error: 'invalid', errors: { title: ['Required'] } }, { status: 422 })],
      ['delete /api/tasks/1', new Response(null, { status: 204 })],
      ['get /api/tasks/1', Response.json({ ...task, hash: 'x' }), /: 200: body must NOT have additional properties$/],
      ['get /api/tasks', Response.json([{ ...task, id: 1 }]), /: 200: body\/0\/id must be string$/],
      ['get /api/tasks/1', Response.json(task, { status: 203 }), /: 203 is not described$/],
      ['get /api/tasks/1', new Response('<p>', html), /: 200 has a body of text\/html/],
      ['get /api/tasks/1', new Response(null, { status: 200 }), /: 200 has no body\b/],
      ['get /api/tasks/1', Response.json({ code: 'no_task' }, { status: 404 }), /: 404: .*required property 'error'/],
      ['delete /api/tasks/1', Response.json(task), /: 200 is not described$/],
      ['patch /api/tasks/1', Response.json(task), /^patch \/api\/tasks\/1: 200 of an operation that is not described$/],
      ['get /api/tasks/1/more', Response.json(task), /^get \/api\/tasks\/1\/more: 200 of an operation/],
    ]
    const contract = createContract(description)
    for (const [call, response, problem] of rows) {
      const [method = '', path = ''] = call.split(' ')
      const sent = contract.client({ [method]: () => Promise.resolve(response) })[method]?.(path)
      if (problem === undefined) assert.equal((await sent)?.bodyUsed, false, call)
      else await assert.rejects(async () => sent, (error: Error) => problem.test(error.message), `${call}: ${problem}`)
    }
    assert.deepEqual([...contract.untested], ['put /api/tasks/{id}'])
  })
})
