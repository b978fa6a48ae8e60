/**
 * Makes the pictures of the documents, from running servers: `node test/run.js --exec test/pictures/main.ts`. The monitor after half a minute of
 * mixed requests, the errors that these have left, and the demo's board.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { send, signUp } from '../browser/board-person.ts'
import { startApplication } from '../support/application.ts'
import { startBoard } from '../support/board.ts'
import { openPage } from '../support/browser.ts'
import { until } from '../support/until.ts'
import { signedUp } from '../support/visitor.ts'

const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url))
const maxBytes = 150_000
const loadMs = 30_000
const shop = {
  'routes/shop.json': [
    { name: 'orders.list', url: '/orders', method: 'GET', action: 'shop.mjs' },
    { name: 'orders.show', url: '/orders/:id', method: 'GET', action: 'shop.mjs@show' },
    { name: 'orders.news', url: '/orders/news', method: 'GET', action: 'shop.mjs@news' },
  ],
  'shop.mjs': `
    import { setTimeout as delay } from 'node:timers/promises'
    const orders = Array.from({ length: 20 }, (_, id) => ({ id, state: 'paid' }))
    export default async () => { await delay(3 + Math.random() * 8); return orders }
    export const show = (ctx) => {
      if (ctx.params.id === '13') throw new Error('Order 13 has no address')
      return orders[ctx.params.id] ?? ctx.fail(404)
    }
    export const news = (ctx) => ctx.longPoll(ctx.channel('news'), { timeout_s: 5 })
  `,
}

async function load(url: string): Promise<void> {
  const end = Date.now() + loadMs
  const ask = async (path: string): Promise<void> => void (await (await fetch(url + path)).arrayBuffer())
  const clients = Array.from({ length: 6 }, async (_, client) => {
    for (let at = client; Date.now() < end; at += 1) {
      await ask(at % 3 === 0 ? '/orders' : `/orders/${at % 61 === 0 ? 13 : at % 13}`)
      await delay(10 + 20 * Math.abs(Math.sin(at / 200)))
    }
  })
  const poll = async (): Promise<void> => {
    while (Date.now() < end) await ask('/orders/news')
  }
  await Promise.all([...clients, poll(), poll()])
}

function check(name: string): void {
  const { size } = statSync(join(folder, name))
  console.log(`docs/images/${name}: ${size} bytes`)
  if (size > maxBytes) throw new Error(`docs/images/${name} has ${size} bytes: at most ${maxBytes} are allowed`)
}

test('the monitor and the errors', { timeout: 120_000 }, async (t) => {
  const page = await openPage(t)
  const { url, folder: application } = await startApplication(t, shop, { 'app.env': 'dev', 'monitor.interval_s': 1, 'shared.name': 'shop' })
  await page.look({ width: 1280, height: 900, dark: false })
  process.chdir(application) // So that the places of errors are shown without it.
  await page.open(`${url}/svc-monitor#minutes=1`)
  await load(url)
  await page.screenshot(join(folder, 'monitor.png'))
  check('monitor.png')
  await page.look({ width: 1280, height: 420, dark: false })
  await page.open(`${url}/svc-errors`)
  await page.screenshot(join(folder, 'errors.png'))
  check('errors.png')
})

test('the board', async (t) => {
  const page = await openPage(t)
  const { url } = await startBoard(t)
  await page.look({ width: 1280, height: 720, dark: false })
  const bob = await signedUp(url, 'Bob')
  await bob.add('Choir practice moves to Thursday, at seven. Bring the green books.')
  await bob.add('Found: a red umbrella, at the north gate.')
  await signUp(page, url, 'Ann')
  await send(page, { text: 'The key of the cellar is with the neighbours.' })
  await send(page, { text: 'Two bicycles to lend, at the blue door.' })
  await bob.add('Who has a long ladder for Saturday? The lamp in the stairwell is out.')
  await bob.add('Fresh bread at the market from eight.')
  await page.open(url)
  await until(async () => (await page.text('#others')) !== '')
  await page.screenshot(join(folder, 'board.png'))
  check('board.png')
})
