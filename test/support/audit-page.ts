/** The numbers of lines in `docs/audit.md`, whose text is written by hand. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { optionalRooms } from '../../lib/proof/tiers.ts'
import { tierOne } from '../sizes/measures.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const tierThree = new RegExp(`^lib/(?:${optionalRooms.join('|')})/`)

/** The page with the current numbers of lines. */
export function renderAudit(): string {
  const page = readFileSync(join(root, 'docs/audit.md'), 'utf8')
  const files = ['bin', 'lib'].flatMap(filesBelow)
  const isFirst = (file: string): boolean => tierOne.test(file.slice('lib/'.length))
  const sumOf = (chosen: (file: string) => boolean): number =>
    files.filter(chosen).reduce((sum, file) => sum + linesOf(file), 0)
  const hundreds = (lines: number): string => (Math.round(lines / 100) * 100).toLocaleString('en')
  const second = hundreds(sumOf((file) => !isFirst(file) && !tierThree.test(file)))
  const third = hundreds(sumOf((file) => tierThree.test(file)))
  return page
    .replace(/^\| `([\w/-]+\.ts)` \| \d+ \|/gm, (_, file: string) => `| \`${file}\` | ${linesOf(`lib/${file}`)} |`)
    .replace(/^[\d,]+(?= lines to read first)/m, sumOf(isFirst).toLocaleString('en'))
    .replace(/^\| `([\w-]+\/)` \| \d+ \|/gm, (_, room: string) => `| \`${room}\` | ${sumOf((file) => file.startsWith(`lib/${room}`))} |`)
    .replace(/(?<=^The rest is the least server: )[\d,]+/m, sumOf((file) => file.startsWith('lib/') && !tierThree.test(file)).toLocaleString('en'))
    .replace(/^Tier 2 has [\d,]+ lines with comments, (.*) [\d,]+\./m, (_, rest: string) => `Tier 2 has ${second} lines with comments, ${rest} ${third}.`)
}

function filesBelow(folder: string): string[] {
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name).slice(root.length))
}

function linesOf(file: string): number {
  return readFileSync(join(root, file), 'utf8').split('\n').length - 1
}
