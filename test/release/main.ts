/** `npm run release [-- --out DIR] [-- --key PRIVATE.pem]`: makes the files of a release from the last commit. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../support/launch.ts'
import { makeRelease, ReleaseError } from './release.ts'

const { values } = parseArgs({ options: { out: { type: 'string', default: 'release' }, key: { type: 'string' } } })
const { out, key } = values
try {
  const names = makeRelease({ checkout: root, out, keyFile: key, warn: (message) => console.error(`Warning: ${message}`) })
  console.log(readFileSync(join(out, 'SHA256SUMS'), 'utf8').trimEnd())
  for (const name of names.filter((each) => each.endsWith('.sig'))) console.log(`signed: ${join(out, name)}`)
  if (key === undefined) console.log('not signed: no --key')
} catch (error) {
  if (!(error instanceof ReleaseError)) throw error
  console.error(`Cannot make a release: ${error.message}`)
  process.exitCode = 1
}
