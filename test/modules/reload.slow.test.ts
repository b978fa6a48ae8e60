import { it } from 'node:test'
import { checkReloads } from './reload-support.ts'

it('a reload never exposes half a table, or a 404 that neither table would give: 50 reloads', (t) =>
  checkReloads(t, 50))
