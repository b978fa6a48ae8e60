// docs/context.md: its signatures match the types.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { writeFiles } from '../support/application.ts'
import { contextRows } from '../support/context-page.ts'
import { root } from '../support/launch.ts'
import { readPage } from '../support/markdown.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

it('docs/context.md has the signatures of the members', () => {
  const folder = temporaryFolder()
  const file = 'check.mts'
  const [types = ''] = readFileSync(join(root, 'lib/svc.d.ts'), 'utf8').split("\n// The browser's half")
  const names = [...types.matchAll(/^  export (?:interface|type|class) (\w+)/gm)].map(([, each]) => each)
  const checks = contextRows(readPage('docs/context.md')).map(({ name, type }) => {
    return `export const ${name}_: Same<${type}, Context['${name}']> = true\n`
  })
  writeFiles(folder, {
    'tsconfig.json': {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { noEmit: true, noUnusedLocals: false, rewriteRelativeImportExtensions: false, paths: { svc: [join(root, 'lib/svc.d.ts')] }, typeRoots: [join(root, 'node_modules/@types')] },
      files: [file],
      include: [],
    },
    [file]: `import type { ${names.join(', ')} } from 'svc'
      type Lengths<T> = T extends (...all: infer All) => unknown ? All['length'] : never
      type Same<A, B> = B extends A ? (Lengths<A> extends Lengths<B> ? (Lengths<B> extends Lengths<A> ? true : 'other parameters') : 'other parameters') : 'another type'
      ${checks.join('')}`,
  })
  const { status, stdout } = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder], { encoding: 'utf8' })
  assert.equal(status, 0, stdout)
})
