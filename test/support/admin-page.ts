/** The list of metrics in `docs/admin.md`, whose text is written by hand. */
import { readFileSync } from 'node:fs'
import { renderPrometheus } from '../../lib/metrics/prometheus.ts'
import { busySources, code, ownProcess } from '../metrics/sources.ts'
import { root } from './markdown.ts'

const head = '| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n'

/** The page with every metric that the server has. */
export function renderAdmin(): string {
  const page = readFileSync(new URL('docs/admin.md', root), 'utf8')
  const begin = page.indexOf(head)
  if (begin < 0) throw new Error(`docs/admin.md has no table that begins with ${head}`)
  const end = page.indexOf('\n\n', begin) + 1
  return page.slice(0, begin) + head + rowsOfMetrics().join('') + page.slice(end)
}

/** A row for each family of a server with several processes and nodes. */
function rowsOfMetrics(): string[] {
  const reading = ownProcess(busySources()).read('start')
  const processes = [{ id: 'primary', pid: 1, responding: true, reading }]
  const parts = { processes, ended: { count: 0, reading: undefined } }
  const text = renderPrometheus(code, { pid: 1, total: reading, parts }, [{ state: 'ready' }])
  return text.split('# HELP ').slice(1).map((family) => {
    const [help = '', type = '', sample = ''] = family.split('\n')
    const at = help.indexOf(' ')
    const name = help.slice(0, at)
    const labels = [...(/\{(.*)\}/.exec(sample)?.[1] ?? '').matchAll(/(?:^|,)(\w+)=/g)].map(([, label]) => `\`${label}\``)
    const shown = labels.filter((label) => label !== '`le`').join(', ')
    return `| \`${name}\` | ${type.split(' ').at(-1)} | ${shown} | ${help.slice(at + 1)} |\n`
  })
}
