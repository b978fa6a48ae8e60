// The least server: a copy of this checkout without the rooms that an installation may leave out, and the tests of what
// is left, for `node test/run.js --least`. A test is left out with a room that it, or a file that it imports, imports
// from, or when it names what asks for one.
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'

const copied = ['bin', 'docs', 'lib', 'routes', 'test', 'package.json', 'svc.json', 'tsconfig.json']
const asks = /'dev'|tls|https:|jwt|websocket|presence|svc\.live|svc-openapi|jobs\/[\w-]+\.json/i
const imported = /(?:^(?:import|export) (?!type)[^'"]*?from |^\} from |^import |\bimport\()'(\.{1,2}\/[^'?]+)/gm

/** The rooms that can be left out, read from the text: on Node 20 this program cannot import it. */
export function optionalRooms(root) {
  const [, list] = /optionalRooms: readonly string\[\] = \[(.*?)^\]/ms.exec(textOf(root, 'lib/proof/tiers.ts'))
  return [...list.matchAll(/'([\w-]+)'/g)].map(([, room]) => room)
}

/** Makes the copy; returns its folder. */
export function copyLeast(root) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-least-'))
  const isOwn = (path) => !/\/(?:node_modules|\.cached|\.logs)(?:\/|$)/.test(path.slice(root.length))
  for (const name of copied) cpSync(join(root, name), join(folder, name), { recursive: true, filter: isOwn })
  for (const room of optionalRooms(root)) {
    for (const side of ['lib', 'test']) rmSync(join(folder, side, room), { recursive: true, force: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** The tests of the rooms that are left, of those in `files`. */
export function testsOfLeast(root, files) {
  const left = readdirSync(join(root, 'lib')).filter((name) => !optionalRooms(root).includes(name))
  const gone = new RegExp(`^(?:lib|test)/(?:${optionalRooms(root).join('|')})/`)
  return files.filter((file) => {
    const room = file.split('/')[1]
    return [...left, 'hostile'].includes(room) && !asks.test(textOf(root, file)) && !reaches(root, file, gone)
  })
}

/** Whether a test, or what it imports of `test/`, imports from a room that is gone. */
function reaches(root, test, gone) {
  const seen = new Set([test])
  for (const file of seen) {
    const targets = importsOf(root, file)
    if (targets.some((target) => gone.test(target))) return true
    for (const target of targets) if (target.startsWith('test/') && existsSync(join(root, target))) seen.add(target)
  }
  return false
}

function importsOf(root, file) {
  return [...textOf(root, file).matchAll(imported)].map(([, path]) => posix.join(posix.dirname(file), path))
}

const texts = new Map()

function textOf(root, file) {
  if (!texts.has(file)) texts.set(file, readFileSync(join(root, file), 'utf8'))
  return texts.get(file)
}
