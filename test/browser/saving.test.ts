/**
 * How long it takes in `dev` from saving a file to the new answer, and to the refreshed page. The figures are printed and
 * not judged: run it alone, `node test/run.js browser/saving`.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { openPage } from '../support/browser.ts'
import { launch } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { setTimeout as delay } from 'node:timers/promises'

const rounds = 20
/** The minimum time that a person takes between two saves. */
const pauseMs = 200

const page = (text: string): string => `<html><head><title>t</title></head><body><h1>${text}</h1></body></html>`
const routes = (text: string): unknown => [
  { name: 'view', url: '/view', method: 'GET', action: 'view.html' },
  { name: 'action', url: '/action', method: 'GET', action: 'action.mjs' },
  { name: 'route', url: '/route', method: 'GET', scope: text, action: 'scope.html' },
]
/** The saved file, and its new content. The response at the path of its name shows the text. */
const kinds = {
  view: { file: 'view.html', content: page },
  action: { file: 'action.mjs', content: (text: string) => `export default (ctx) => ctx.view('shown.html', { text: '${text}' })\n` },
  route: { file: 'routes/r.json', content: (text: string) => JSON.stringify(routes(text)) },
} as const

test('a saved view, action or route file is seen', async (t) => {
  const cwd = applicationFolder(
    {
      'view.html': page('0'),
      'action.mjs': kinds.action.content('0'),
      'shown.html': page('{{ text }}'),
      'scope.html': page('{{ ctx.route.scope }}'),
      'routes/r.json': routes('0'),
    },
    { 'app.env': 'dev' },
  )
  const browser = await openPage(t)
  const url = await launch(t, [], { cwd }).listening()
  for (const [kind, { file, content }] of Object.entries(kinds)) {
    const answers: number[] = []
    const pages: number[] = []
    await browser.open(`${url}/${kind}`)
    for (let round = 1; round <= rounds; round++) {
      const text = `${kind} ${round}`
      const savedAt = performance.now()
      writeFileSync(join(cwd, file), content(text))
      const isShown = async (): Promise<boolean> =>
        (await browser.evaluate('document.querySelector("h1").innerText').catch(() => '')) === text
      await Promise.all([
        until(async () => (await request(`${url}/${kind}`)).text.includes(text)).then(() => answers.push(performance.now() - savedAt)),
        until(isShown).then(() => pages.push(performance.now() - savedAt)),
      ])
      await delay(pauseMs)
    }
    t.diagnostic(`${kind}: to the new answer ${figures(answers)}, to the refreshed page ${figures(pages)}`)
  }
})

function figures(list: readonly number[]): string {
  const sorted = list.toSorted((a, b) => a - b)
  return `${sorted[Math.floor(sorted.length / 2)]?.toFixed(0)} ms at the median and ${sorted.at(-1)?.toFixed(0)} ms at most`
}
