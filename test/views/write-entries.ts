// Compiles, writes and reads the same entry many times; the test of the disk cache runs several of these at once.
import { join } from 'node:path'
import { Views } from '../../lib/views/cache.ts'

const root = process.argv[2] ?? ''
let problems = 0
let wrong = 0
for (let round = 0; round < 150; round++) {
  const views = new Views({
    root,
    cacheFolder: join(root, '.cached'),
    ram: false,
    disk: true,
    readable: false,
    version: `1.0.${round % 2}`,
    onProblem: () => problems++,
  })
  if (views.render('sub/v.html', { title: 'T' }, {}) !== 'T\ni T\n') wrong++
}
console.log(`problems: ${problems}, wrong pages: ${wrong}`)
