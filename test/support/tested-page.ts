/** The numbers about the code in `docs/tested.md`, whose text is written by hand. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { mutants } from '../mutants/mutants.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The page with the current numbers. */
export function renderTested(): string {
  const server = [...filesBelow('bin'), ...filesBelow('lib')]
  const tests = filesBelow('test').filter((file) => /\.(?:ts|js|mjs)$/.test(file))
  const count = (pattern: RegExp): number => tests.filter((file) => pattern.test(file)).length
  return readFileSync(join(root, 'docs/tested.md'), 'utf8')
    .replace(/(?<=^\| lines of the server, of its tests \| )[^|]*/m, `${linesOf(server)} and ${linesOf(tests)} `)
    .replace(/(?<=^\| files of tests, of which slow \| )[^|]*/m, `${count(/\.test\.ts$/)}, ${count(/\.slow\.test\.ts$/)} `)
    .replace(/(?<=^\| faults put into the code[^|]*\| )\d+/m, `${mutants.length}`)
}

function filesBelow(folder: string): string[] {
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
    .map(({ parentPath, name }) => join(parentPath, name))
}

function linesOf(files: readonly string[]): string {
  return files.reduce((sum, file) => sum + readFileSync(file, 'utf8').split('\n').length - 1, 0).toLocaleString('en')
}
