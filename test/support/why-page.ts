/** The figures of our own code in `docs/why.md`, whose text is written by hand. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { optionalRooms } from '../../lib/proof/tiers.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const optional = new RegExp(`^lib/(?:${optionalRooms.join('|')})/`)

/** The page with the current figures. */
export function renderWhy(): string {
  const cells = serverCells()
  const thousands = Math.round(Number(cells[1]?.split(', ')[1]?.replaceAll(',', '')) / 1000)
  return readFileSync(join(root, 'docs/why.md'), 'utf8')
    .replace(/^\| svc \| {2}\| .*$/m, `| svc |  | ${cells.join(' | ')} |`)
    .replace(/[\d,]+(?= lines, without packages)/, `${thousands},000`)
}

/** This server as cells of the table of packages: the least server, and all of it. */
export function serverCells(): string[] {
  const all = ['bin', 'lib'].flatMap((folder) => filesBelow(join(root, folder)))
  const least = all.filter((file) => !optional.test(file.slice(root.length)))
  return [least, all].map((files) => sizeCell(0, files.filter((file) => /\.[jt]s$/.test(file)), files))
}

/**
 * A cell: the number of packages, the lines of these files of code, the size of these files in megabytes.
 * @param code absolute
 * @param files absolute
 */
export function sizeCell(packages: number, code: readonly string[], files: readonly string[]): string {
  const lines = code.reduce((sum, file) => sum + readFileSync(file, 'utf8').split('\n').length - 1, 0)
  const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0)
  return `${packages}, ${lines.toLocaleString('en')}, ${(bytes / 1e6).toFixed(1)}`
}

/** Every file below a folder, absolute. */
export function filesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
}
