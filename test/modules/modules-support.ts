// Shared by the tests of modules: an application of files, and the seeded check of reloading.
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Modules } from '../../lib/modules/modules.ts'
import type { ModuleNamespace } from '../../lib/modules/modules.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** An application in its own folder, with shorthands for the tests. */
export function application(files: Readonly<Record<string, string>>, timeoutMs?: number) {
  const root = temporaryFolder()
  const write = (changed: Readonly<Record<string, string>>): void => {
    for (const [name, content] of Object.entries(changed)) {
      mkdirSync(dirname(join(root, name)), { recursive: true })
      writeFileSync(join(root, name), content)
    }
  }
  write({ 'package.json': '{"type": "module"}', ...files })
  const modules = new Modules(root, timeoutMs)
  return {
    root,
    write,
    remove: (name: string) => rmSync(join(root, name)),
    load: (name: string) => modules.load(join(root, name)),
    refresh: () => modules.refresh(),
    value: async (name: string) => run(await modules.load(join(root, name))),
  }
}

/** Returns the result of a module's default export. */
export function run(namespace: ModuleNamespace): unknown {
  assert.equal(typeof namespace['default'], 'function')
  return (namespace['default'] as () => unknown)()
}

/** Changes files in each round: modules must match the disk, and unchanged ones must keep their instance. */
export async function checkRenewal(rounds: number): Promise<void> {
  const random = new Seeded(7)
  const app = application({})
  const names = Array.from({ length: 8 }, (_, index) => `m${index}.${index % 3 === 2 ? 'cjs' : 'js'}`)
  const sources = new Map<string, { value: number; imports: readonly string[] }>()
  const change = (index: number): void => {
    const name = names[index] ?? ''
    // A file imports earlier ones; CommonJS imports only CommonJS, since Node keeps ES modules loaded by require.
    const before = names.slice(0, index).filter((one) => name.endsWith('.js') || one.endsWith('.cjs'))
    const imports = before.filter(() => random.integer(3) === 0)
    const value = random.integer(1_000_000)
    sources.set(name, { value, imports })
    const sum = ['', ...imports.map((_, at) => `v${at}()`)].join(' + ')
    const lines = name.endsWith('.cjs')
      ? [...imports.map((one, at) => `const v${at} = require('./${one}')`), `module.exports = () => ${value}${sum}`]
      : [...imports.map((one, at) => `import v${at} from './${one}'`), `export default () => ${value}${sum}`]
    app.write({ [name]: lines.join('\n') })
  }
  const expected = (name: string): number => {
    const { value, imports } = sources.get(name) ?? { value: 0, imports: [] }
    return imports.reduce((total, one) => total + expected(one), value)
  }
  names.forEach((_, index) => change(index))
  const held = new Map<string, ModuleNamespace>()
  for (let round = 0; round < rounds; round++) {
    for (let count = random.integer(3); count > 0; count--) change(random.integer(names.length))
    const loads = names.filter(() => random.integer(4) === 0).map((name) => app.load(name))
    const renewed = new Set(await app.refresh())
    await Promise.all(loads)
    for (const name of names.filter(() => random.integer(3) > 0)) {
      const namespace = await app.load(name)
      assert.equal(run(namespace), expected(name), `${name} in round ${round}`)
      if (held.has(name) && !renewed.has(name)) assert.equal(namespace, held.get(name), `${name} in round ${round}`)
    }
    held.clear()
    for (const name of names) held.set(name, await app.load(name))
  }
}
