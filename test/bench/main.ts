/**
 * `npm run bench -- [NAME] [OPTIONS]`: runs the benchmark of that name in this folder. Without one it is that of rates over
 * HTTP, whose workloads are names as well: `npm run bench -- json form --nodes 24,26`.
 */
import { readdirSync } from 'node:fs'

const names = readdirSync(new URL('.', import.meta.url)).flatMap((file) => /^(\w+)\.ts$/.exec(file)?.[1] ?? [])
const [, , name = ''] = process.argv
if (names.includes(name) && name !== 'main') {
  process.argv.splice(2, 1)
  await import(`./${name}.ts`)
} else {
  if (name === '--help') console.log(`Other benchmarks: ${names.filter((other) => other !== 'main').join(', ')}\n`)
  await import('./http/main.ts')
}
