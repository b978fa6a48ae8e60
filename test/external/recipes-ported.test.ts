// docs/recipes/from-*.md: the applications before and after the move, as the pages show them, pass the same checks.
// Express and Fastify are among the peers of the benchmarks, in `test/bench/peers`; PHP is Debian's package `php-cli`.
// NGINX Unit is archived and not in Debian 12: its application runs on Node's `http`, which Unit's loader replaces.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { peersFolder } from '../bench/support/peers.ts'
import { writeFiles } from '../support/application.ts'
import { freePort } from '../support/free-port.ts'
import { shownFilesIn } from '../support/markdown.ts'
import { portedChecks, runPortedChecks, startPorted } from '../support/ported.ts'
import { startNginxSite } from '../support/proxies.ts'
import { recipePage } from '../support/recipe.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { Visitor } from '../support/visitor.ts'
import * as holds from './in-front.ts'

/** The name of the other server on its page, and how its application is started on a port. */
const others: Readonly<Record<string, readonly [server: string, command: (port: number) => readonly string[]]>> = {
  'from-express': ['Express', () => [process.execPath, 'app.mjs']],
  'from-fastify': ['Fastify', () => [process.execPath, 'app.mjs']],
  'from-unit': ['Unit', () => [process.execPath, 'app.mjs']],
  'from-php': ['PHP', (port) => ['php', '-d', 'session.save_path=.', '-S', `127.0.0.1:${port}`, '-t', 'public']],
}

/** Starts the application before the move, which ends with the test. Returns its address. */
async function startBefore(t: TestContext, name: string): Promise<string> {
  const [server, commandOf] = others[name] ?? assert.fail(`Nothing is known about ${name}`)
  const packages = join(peersFolder, 'node_modules')
  assert.ok(existsSync(packages), `${packages} is missing: run \`npm ci --prefix test/bench/peers\``)
  const folder = temporaryFolder()
  writeFiles(folder, shownFilesIn(recipePage(name), server))
  mkdirSync(join(folder, 'public/pictures'), { recursive: true })
  symlinkSync(packages, join(folder, 'node_modules'))
  const port = await freePort()
  const [program = '', ...args] = commandOf(port)
  const { NODE_OPTIONS: _, ...env } = process.env
  const options = { cwd: folder, env: { ...env, PORT: String(port), SESSION_SECRET: 's'.repeat(32) } }
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  child.on('error', ({ message }) => {
    output += `Cannot run ${program}: ${message}. Install it: apt-get install --no-install-recommends php-cli`
  })
  const closed = once(child, 'close').catch(() => undefined)
  t.after(async () => {
    child.kill('SIGKILL')
    await closed
  })
  const url = `http://127.0.0.1:${port}`
  await until(async () => {
    if (child.pid === undefined || child.exitCode !== null) {
      await closed
      assert.fail(`${server} does not run:\n${output}`)
    }
    return request(`${url}/api/nothing`).then(() => true, () => false)
  })
  return url
}

for (const name of Object.keys(portedChecks)) {
  it(`docs/recipes/${name}.md has two applications that pass the same checks`, async (t) => {
    const checks = portedChecks[name] ?? []
    await runPortedChecks(checks, await startBefore(t, name), 'before')
    await runPortedChecks(checks, (await startPorted(t, name)).url, 'after')
  })
}

describe('a form of another site', () => {
  const forms = [
    ['from-express', '/books', 'title=Forged&pages=1'],
    ['from-fastify', '/books', 'title=Forged&pages=1'],
    ['from-php', '/', 'name=Forged&seats=1'],
  ] as const
  for (const [name, action, body] of forms) {
    it(`is accepted before and refused after, as docs/recipes/${name}.md says`, async (t) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'cross-site' }
      const isTaken = async (url: string): Promise<boolean> => {
        await request(url + action, { body, headers })
        return (await new Visitor(url).get('/')).text.includes('<li>Forged')
      }
      assert.equal(await isTaken(await startBefore(t, name)), true)
      assert.equal(await isTaken((await startPorted(t, name)).url), false)
    })
  }
})

it('nginx sends one path to svc and the others to Express, as docs/recipes/proxy.md has it', async (t) => {
  const blocks = recipePage('proxy').blocks.filter(({ language }) => language === 'nginx')
  const moved = blocks.find(({ text }) => text.startsWith('location /api/'))?.text ?? assert.fail('no such block')
  const old = await startBefore(t, 'from-express')
  const { url } = await startPorted(t, 'from-express')
  const proxy = await startNginxSite(t, `server {
    listen 443 ssl;
    ssl_certificate /cert; ssl_certificate_key /key;
    location / { proxy_pass ${old}; proxy_set_header Host $http_host; }
    ${moved.replace('http://127.0.0.1:8080', url)}
  }`)
  await until(() => holds.ask(`${proxy.url}/`).then(() => true, () => false))
  const ofExpress = await holds.ask(`${proxy.url}/`)
  assert.deepEqual([ofExpress.status, ofExpress.headers['x-powered-by']], [200, 'Express'])
  const ofSvc = await holds.ask(`${proxy.url}/api/books/1`)
  assert.deepEqual([ofSvc.status, ofSvc.headers['x-powered-by']], [200, undefined])
  assert.deepEqual(JSON.parse(ofSvc.body), { id: 1, title: 'Emma', pages: 474 })
  proxy.check()
})
