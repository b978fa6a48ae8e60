// lib/svc.d.ts as a compiler sees it, with the options that `init --ts` writes, with the strictest and with lax ones.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { initApplication, typeScriptFiles } from '../../lib/commands/init.ts'
import { root } from '../support/launch.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const compiler = join(root, 'node_modules/typescript/bin/tsc')
const strictest = {
  exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noPropertyAccessFromIndexSignature: false, noImplicitOverride: true,
  noFallthroughCasesInSwitch: true, noUnusedLocals: true, noUnusedParameters: true, isolatedModules: true, skipLibCheck: false,
}
const lax = { strict: false, verbatimModuleSyntax: false, erasableSyntaxOnly: false, skipLibCheck: false, module: 'preserve', lib: ['esnext', 'dom'] }

describe('the types of svc', () => {
  const folder = join(temporaryFolder(), 'app')
  before(() => {
    initApplication(folder, typeScriptFiles)
    cpSync(join(root, 'test/types'), join(folder, 'types'), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  })

  /** Returns the compiler's output for some files with more options. */
  function complaints(files: readonly string[], options: object): string {
    const made = JSON.parse(readFileSync(join(folder, 'tsconfig.json'), 'utf8')) as { compilerOptions: object }
    const config = { compilerOptions: { ...made.compilerOptions, ...options }, files: files.map((file) => `types/${file}`) }
    writeFileSync(join(folder, 'tsconfig.own.json'), JSON.stringify(config))
    const { stdout, stderr } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.own.json'], { cwd: folder, encoding: 'utf8' })
    return stdout + stderr
  }

  it('accept valid applications', () => {
    assert.equal(complaints(['right.ts', 'any-name.ts', 'script.d.ts'], {}), '')
    assert.equal(complaints(['right.ts', 'script.d.ts'], strictest), '')
    assert.equal(complaints(['right.ts', 'any-name.ts'], lax), '')
  })

  it('refuse invalid ones', () => {
    for (const options of [{}, strictest]) assert.equal(complaints(['wrong.ts', 'values.d.ts', 'script.d.ts'], options), '')
  })

  it('report a parameter without a pattern as possibly undefined, if the compiler is that strict', () => {
    assert.match(complaints(['any-name.ts'], strictest), /^types\/any-name\.ts\(4,.* possibly 'undefined'\.\ntypes\/any-name\.ts\(5,.* possibly 'undefined'\.\n$/)
  })
})
