/** Writes the pages of `docs/` generated from tables in the code: `npm run docs`. Tests check that they are current. */
import { writeFileSync } from 'node:fs'
import { renderAdmin } from './admin-page.ts'
import { renderAudit } from './audit-page.ts'
import { renderConfiguration } from './documentation.ts'
import { renderErrors } from './errors-page.ts'
import { renderJobSchema } from './job-schema.ts'
import { renderRouteSchema } from './route-schema.ts'
import { renderMiddlewareSchema, renderSchema } from './schema.ts'
import { renderTested } from './tested-page.ts'
import { renderWhy } from './why-page.ts'

const pages = [
  ['admin.md', renderAdmin],
  ['audit.md', renderAudit],
  ['configuration.md', renderConfiguration],
  ['errors.md', renderErrors],
  ['schemas/jobs.schema.json', renderJobSchema],
  ['schemas/middleware.schema.json', renderMiddlewareSchema],
  ['schemas/routes.schema.json', renderRouteSchema],
  ['svc.schema.json', renderSchema],
  ['tested.md', renderTested],
  ['why.md', renderWhy],
] as const

for (const [name, render] of pages) {
  writeFileSync(new URL(`../../docs/${name}`, import.meta.url), render())
}
