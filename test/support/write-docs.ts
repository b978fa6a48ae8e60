/** Writes the pages of `docs/` that are made from tables in the code: `npm run docs`. Tests hold the pages to the tables. */
import { writeFileSync } from 'node:fs'
import { renderAdmin } from './admin-page.ts'
import { renderAudit } from './audit-page.ts'
import { renderConfiguration } from './documentation.ts'
import { renderErrors } from './errors-page.ts'
import { renderSchema } from './schema.ts'

const pages = [
  ['admin.md', renderAdmin],
  ['audit.md', renderAudit],
  ['configuration.md', renderConfiguration],
  ['errors.md', renderErrors],
  ['svc.schema.json', renderSchema],
] as const

for (const [name, render] of pages) {
  writeFileSync(new URL(`../../docs/${name}`, import.meta.url), render())
}
