import assert from 'node:assert/strict'
import { test } from 'node:test'
import { helpText, parseOptions } from '../../lib/cli/options.ts'
import type { Command } from '../../lib/cli/options.ts'

const none = { config: undefined, overrides: {} }

const right: readonly [args: string, command: Command][] = [
  ['', { word: 'start', ...none }],
  ['start', { word: 'start', ...none }],
  ['check', { word: 'check', ...none }],
  ['routes', { word: 'routes', ...none }],
  ['--config a.json', { word: 'start', config: 'a.json', overrides: {} }],
  ['--config=a=b.json check', { word: 'check', config: 'a=b.json', overrides: {} }],
  ['check --config a.json', { word: 'check', config: 'a.json', overrides: {} }],
  ['--config=-a.json', { word: 'start', config: '-a.json', overrides: {} }],
  ['--port 0 start', { word: 'start', config: undefined, overrides: { 'server.port': 0 } }],
  [
    '--host :: start --port=65535 --env dev',
    { word: 'start', config: undefined, overrides: { 'server.host': '::', 'server.port': 65535, 'app.env': 'dev' } },
  ],
  ['--env prod', { word: 'start', config: undefined, overrides: { 'app.env': 'prod' } }],
  ['permissions', { word: 'permissions', write: [], ...none }],
  ['--write a permissions --write=-b', { word: 'permissions', write: ['a', '-b'], ...none }],
  ['types', { word: 'types', checks: false, ...none }],
  ['types --check', { word: 'types', checks: true, ...none }],
  ['openapi', { word: 'openapi', out: undefined, ...none }],
  ['--out a.json openapi --config b.json', { word: 'openapi', out: 'a.json', config: 'b.json', overrides: {} }],
  ['init app', { word: 'init', folder: 'app', typeScript: false }],
  ['init app --ts', { word: 'init', folder: 'app', typeScript: true }],
  ['--ts init app', { word: 'init', folder: 'app', typeScript: true }],
  ['init -- --app', { word: 'init', folder: '--app', typeScript: false }],
  ['docs', { word: 'docs', port: 8090 }],
  ['docs --port 0', { word: 'docs', port: 0 }],
  ['digest', { word: 'digest', manifest: false }],
  ['--manifest digest', { word: 'digest', manifest: true }],
  ['verify a.json', { word: 'verify', manifest: 'a.json', key: undefined }],
  ['verify a.json --key b.pem', { word: 'verify', manifest: 'a.json', key: 'b.pem' }],
  ['reload', { word: 'reload', ...none }],
  ['audit', { word: 'audit', files: [], head: undefined, ...none }],
  [`audit a b.gz --head ${'A'.repeat(64)}`, { word: 'audit', files: ['a', 'b.gz'], head: 'a'.repeat(64), ...none }],
  ['--help', { word: 'help' }],
  ['-h', { word: 'help' }],
  ['start --port 1 --help', { word: 'help' }],
  ['init --help', { word: 'help' }],
  ['--version', { word: 'version' }],
  ['-v', { word: 'version' }],
  ['--version --help', { word: 'help' }],
  ['--port 1 --port 2', { word: 'start', config: undefined, overrides: { 'server.port': 2 } }],
]

const wrong: readonly [args: string, error: string][] = [
  ['strat', 'unknown word "strat": did you mean start?'],
  ['deploy', 'unknown word "deploy"'],
  ['strat --help', 'unknown word "strat": did you mean start?'],
  ['audit --head abc', '--head must be the mac of a record, 64 hexadecimal digits'],
  ['start now', 'start takes no more arguments, but got "now"'],
  ['check a.json', 'check takes no more arguments, but got "a.json"'],
  ['init', 'init needs the folder to make: svc init DIR'],
  ['docs --port x', '--port must be 0 to 65535: it is "x"'],
  ['docs --host ::', 'docs does not take --host'],
  ['docs forms', 'docs takes no more arguments, but got "forms"'],
  ['init a b', 'init takes no more arguments, but got "b"'],
  ['init a --port 1', 'init does not take --port'],
  ['start --ts', 'start does not take --ts'],
  ['--ts', 'start does not take --ts'],
  ['check --out a', 'check does not take --out'],
  ['openapi --check', 'openapi does not take --check'],
  ['openapi --out=', '--out needs a value'],
  ['types a', 'types takes no more arguments, but got "a"'],
  ['check --write a', 'check does not take --write'],
  ['init a --write a', 'init does not take --write'],
  ['permissions --write=', '--write needs a value'],
  ['permissions --ts', 'permissions does not take --ts'],
  ['digest a', 'digest takes no more arguments, but got "a"'],
  ['digest --port 1', 'digest does not take --port'],
  ['digest --key a', 'digest does not take --key'],
  ['verify', 'verify needs the manifest to compare with: svc verify MANIFEST'],
  ['verify a b', 'verify takes no more arguments, but got "b"'],
  ['verify a --key=', '--key needs a value'],
  ['verify a --config b', 'verify does not take --config'],
  ['start --manifest', 'start does not take --manifest'],
  ['--prot 80', 'unknown option --prot: did you mean --port?'],
  ['--quiet', 'unknown option --quiet'],
  ['-p 80', 'unknown option -p'],
  ['--port=', '--port needs a value'],
  ['--port=-1', '--port must be 0 to 65535: it is -1'],
  ['--port 65536', '--port must be 0 to 65535: it is 65536'],
  ['--port 1e3', '--port must be 0 to 65535: it is "1e3"'],
  ['--port http', '--port must be 0 to 65535: it is "http"'],
  ['--env test', '--env must be prod or dev: it is "test"'],
  [
    '--host http://x',
    '--host must be a host name or an address, without port and brackets, such as 127.0.0.1 or ::1: it is "http://x"',
  ],
]

const split = (args: string): string[] => args.split(' ').filter((arg) => arg !== '')

test('reads the command and the options, before and after it', () => {
  for (const [args, command] of right) assert.deepEqual(parseOptions(split(args)), command, args)
})

test('wrong usage names the wrong part', () => {
  for (const [args, error] of wrong) assert.deepEqual(parseOptions(split(args)), { word: 'usage', error }, args)
})

const namedByNode: readonly [args: string, part: string][] = [
  ['init a --ts=yes', '--ts'],
  ['permissions --write', '--write'],
  ['digest a', 'digest takes no more arguments, but got "a"'],
  ['digest --port 1', 'digest does not take --port'],
  ['digest --key a', 'digest does not take --key'],
  ['verify', 'verify needs the manifest to compare with: svc verify MANIFEST'],
  ['verify a b', 'verify takes no more arguments, but got "b"'],
  ['verify a --key=', '--key needs a value'],
  ['verify a --config b', 'verify does not take --config'],
  ['start --manifest', 'start does not take --manifest'],
  ['--prot 80', '--prot'],
  ['--no-help', '--no-help'],
  ['--port', '--port'],
  ['--port --env dev', '--port'],
  ['--port -1', '--port'],
  ['--help=yes', '--help'],
]

test('names an unknown option, or one with a missing or superfluous value', () => {
  for (const [args, part] of namedByNode) {
    const command = parseOptions(split(args))
    assert.ok(command.word === 'usage' && command.error.includes(part), JSON.stringify(command))
  }
})

test('an empty folder and an empty value are wrong usage', () => {
  assert.equal(parseOptions(['init', '']).word, 'usage')
  assert.equal(parseOptions(['--config', '']).word, 'usage')
  assert.equal(parseOptions(['']).word, 'usage')
})

test('the help lists every command and option and fits a terminal', () => {
  const options = ['--config', '--host', '--port', '--env', '--help', '--version']
  for (const part of ['start', 'check', 'routes', 'init DIR', ...options]) assert.ok(helpText.includes(part), part)
  assert.deepEqual(helpText.split('\n').filter((line) => line.length > 80), [])
})
