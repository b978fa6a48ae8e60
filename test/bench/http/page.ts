/**
 * The page of the workload `view`: 4 KiB, with 20 expressions, in any syntax that has an opening and a closing mark.
 * Data and expected text are made here, too, so that no template engine says what is right.
 */

/** What the page is made from. */
export const pageData = {
  title: 'Order 20417',
  shop: { name: 'Barnes & Daughters', street: '4 Harbour Lane', city: 'Whitby', phone: '01947 600111' },
  user: { name: 'Ada Lovelace', mail: 'ada@example.org', city: 'London', since: 2019 },
  order: { id: 20417, day: '3 June', parcels: 2, weight: '1.4 kg', note: 'Ring twice, if <late>', total: '84.20' },
  delivery: { carrier: 'North Sea Parcels', from: '9:00', to: '12:30', code: 'WB-7731' },
  help: 'help@example.org',
} as const

/** An expression of the page, and what it prints. */
const expressions: readonly (readonly [string, string])[] = [
  ['title', pageData.title],
  ...membersOf('shop', pageData.shop),
  ...membersOf('user', pageData.user),
  ...membersOf('order', pageData.order),
  ...membersOf('delivery', pageData.delivery),
  ['help', pageData.help],
]
const pageBytes = 4096
const prose = 'We keep what you have ordered for as long as the law asks us to, and no longer than that. '

/** The page as a template. Throws RangeError when the marks are so long that it would not fit. */
export function pageTemplate(open: string, close: string): string {
  return pageWith((expression) => `${open} ${expression} ${close}`)
}

/** The page as it must be sent: 4096 bytes. */
export const pageText = pageWith((_, printed) => printed)

function pageWith(render: (expression: string, printed: string) => string): string {
  const lines = (print: (expression: string, printed: string) => string): string =>
    expressions.map(([expression, printed]) => `  <li class="line">${print(expression, printed)}</li>\n`).join('')
  const head = '<!doctype html>\n<meta charset="utf-8">\n<title>Your order</title>\n<ul>\n'
  const foot = '</ul>\n</html>\n'
  const rest = pageBytes - head.length - foot.length - lines((_, printed) => printed).length
  const filler = `<p>${prose.repeat(Math.ceil(rest / prose.length)).slice(0, rest - 8)}</p>\n`
  return head + lines(render) + filler + foot
}

function membersOf(name: string, object: Readonly<Record<string, string | number>>): [string, string][] {
  return Object.entries(object).map(([key, value]) => [`${name}.${key}`, escaped(String(value))])
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')
}
