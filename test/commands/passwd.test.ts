import assert from 'node:assert/strict'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { createPasswordCheck } from '../../lib/access/password.ts'
import { hashOfRecoveryCode } from '../../lib/access/recovery-codes.ts'
import { passwd } from '../../lib/commands/passwd.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const check = createPasswordCheck()

interface Ran {
  readonly status: number
  readonly out: string
  readonly problem: string
  /** The values that raw mode of the terminal was set to. */
  readonly raw: readonly boolean[]
}

/** Runs the command on a file with typed or piped input. */
async function run(
  file: string,
  typed: readonly (string | Buffer)[],
  isTerminal = false,
  withTotp = false,
): Promise<Ran> {
  const seen = { out: '', problem: '', raw: [] as boolean[] }
  const input = Object.assign(
    Readable.from(oneByOne(typed)),
    isTerminal ? { isTTY: true, setRawMode: (on: boolean) => seen.raw.push(on) } : {},
  )
  const status = await passwd(file, async () => loadConfig(file), withTotp, {
    input,
    out: (text) => void (seen.out += text),
    problem: (text) => void (seen.problem += text),
  })
  return { status, ...seen }
}

/** Emits chunks with time for prompts in between. */
async function* oneByOne(typed: readonly (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const part of typed) {
    yield Buffer.from(part)
    await setTimeout(10)
  }
}

function fileIn(text?: string): string {
  const file = join(temporaryFolder(), 'svc.json')
  if (text !== undefined) writeFileSync(file, text)
  return file
}

const unrecorded = 'Not recorded in the audit log: there is no app_key here to sign the record with\n'

test('creates a file, only for its owner, from three lines of standard input', async () => {
  const file = fileIn()
  const ran = await run(file, ['ann\nsec', 'ret\nsecret\n'])
  assert.deepEqual(ran, { status: 0, out: `Saved in ${file}. Restart a server that uses it.\n`, problem: unrecorded, raw: [] })
  const { config } = loadConfig(file)
  assert.equal(config['admin.user'], 'ann')
  assert.equal(config['admin.password'], '5ebe2294ecd0e0f08eab7690d2a6ee69')
  assert.match(config['admin.secret'], /^[0-9a-f]{32}$/)
  assert.equal(config.app_key, '')
  assert.equal(statSync(file).mode & 0o7777, 0o600)
})

test('changes only name, hash and secret of a file', async () => {
  const file = fileIn('{"mine": 1, "admin": {"user": "old", "secret": "old"}, "app_key": "key"}')
  chmodSync(file, 0o640)
  assert.equal((await run(file, ['ann\r\nsecret\r\nsecret\r\n\r\n'])).status, 0)
  const { mine, admin, app_key } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Record<string, string>>
  assert.deepEqual([mine, app_key, admin?.['user']], [1, 'key', 'ann'])
  assert.notEqual(admin?.['secret'], 'old')
  assert.equal(statSync(file).mode & 0o7777, 0o640)
})

test('hashes with scrypt if the file requires it', async () => {
  const file = fileIn('{"admin": {"hardened": true}}')
  assert.equal((await run(file, ['ann\nsecret\nsecret'])).status, 0)
  const { config } = loadConfig(file)
  assert.match(config['admin.password'], /^scrypt\$/)
  assert.equal(Buffer.from(config['admin.secret'], 'base64url').length, 32)
  assert.equal(await check.matches('secret', config['admin.password']), true)
})

const wrong: [lines: string, problem: string][] = [
  ['', 'Standard input must have three lines: the name, the password, and the password again'],
  ['ann\nsecret\n', 'Standard input must have three lines: the name, the password, and the password again'],
  ['ann\nsecret', 'Standard input must have three lines: the name, the password, and the password again'],
  ['ann\nsecret\nsecret\nmore', 'Standard input must have three lines: the name, the password, and the password again'],
  ['\nsecret\nsecret\n', 'Username cannot be empty'],
  ['ann\n12345\n12345\n', 'Password must be at least 6 characters'],
  ['ann\nsecret\nSecret\n', 'Passwords do not match'],
]

for (const [lines, problem] of wrong) {
  test(`refuses standard input ${JSON.stringify(lines)} as wrong usage`, async () => {
    const file = fileIn()
    assert.deepEqual(await run(file, [lines]), { status: 2, out: '', problem: `${problem}\n`, raw: [] })
    assert.equal(existsSync(file), false)
  })
}

test('reports problems of the configuration without a prompt', async () => {
  const file = fileIn('{"server": {"port": -1}}')
  const { status, problem } = await run(file, [])
  assert.equal(status, 78)
  assert.match(problem, /server\.port must be 0 to 65535: it is -1/)
})

test('throws an error that does not concern the configuration', async () => {
  const load = () => {
    throw new TypeError('a mistake of ours')
  }
  await assert.rejects(passwd('svc.json', load), /a mistake of ours/)
})

test('reports why it could not save', async () => {
  const file = join(temporaryFolder(), 'gone', 'svc.json')
  const { status, problem } = await run(file, ['ann\nsecret\nsecret\n'])
  assert.equal(status, 1)
  assert.match(problem, /^Cannot save .*svc\.json: ENOENT.*; the folder does not exist\n$/)
  mkdirSync(join(file, '..'))
  assert.equal((await run(file, ['ann\nsecret\nsecret\n'])).status, 0)
})

// ---- the second factor ----

test('makes a second factor, and prints its secret, its address and ten recovery codes', async () => {
  const file = fileIn()
  const { status, out, problem } = await run(file, ['ann\nsecret\nsecret\n'], false, true)
  assert.deepEqual([status, problem], [0, unrecorded])
  const { config } = loadConfig(file)
  const { 'admin.totp': secret, 'admin.recovery_codes': hashes } = config
  assert.match(out, new RegExp(`^Saved in ${file}\\. Restart a server that uses it\\.\n\nThe sign-in now asks for a code\\.`))
  assert.ok(out.includes(`\nSecret: ${secret}\nAddress: otpauth://totp/svc%20on%20`), out)
  assert.match(out, new RegExp(`:ann\\?secret=${secret}&issuer=svc%20on%20[^&]+&algorithm=SHA1&digits=6&period=30\n`))
  const codes = [...out.matchAll(/^ {2}(\S+)$/gm)].map(([, code = '']) => code)
  assert.deepEqual(codes.map((code) => hashOfRecoveryCode(code, hashes)), hashes)
  assert.equal(hashes.length, 10)
  assert.match(config['admin.secret'], /^[\w-]{43}$/) // The password must not be enough to compute it.
  assert.match(config['admin.password'], /^[0-9a-f]{32}$/)
  assert.doesNotMatch(readFileSync(file, 'utf8'), new RegExp(codes.join('|')))
})

test('keeps the second factor without the option, and replaces it with it', async () => {
  const file = fileIn()
  await run(file, ['ann\nsecret\nsecret\n'], false, true)
  const { config: first } = loadConfig(file)
  const { out } = await run(file, ['bob\nother1\nother1\n'])
  const { config: second } = loadConfig(file)
  assert.match(out, /\nThe second factor is unchanged: `svc passwd --totp` makes a new one; empty admin\.totp to turn it off\.\n$/)
  assert.deepEqual([second['admin.user'], second['admin.totp']], ['bob', first['admin.totp']])
  assert.deepEqual(second['admin.recovery_codes'], first['admin.recovery_codes'])
  assert.match(second['admin.secret'], /^[\w-]{43}$/)
  assert.notEqual(second['admin.secret'], first['admin.secret'])
  await run(file, ['bob\nother1\nother1\n'], false, true)
  const { config: third } = loadConfig(file)
  assert.notEqual(third['admin.totp'], first['admin.totp'])
  assert.ok(third['admin.recovery_codes'].every((hash) => !first['admin.recovery_codes'].includes(hash)))
})

test('prints no second factor that it did not save', async () => {
  const file = fileIn()
  const { status, out } = await run(file, ['ann\nsecret\nanother\n'], false, true)
  assert.deepEqual([status, out], [2, ''])
  assert.equal(existsSync(file), false)
  const gone = join(temporaryFolder(), 'gone', 'svc.json')
  assert.deepEqual((await run(gone, ['ann\nsecret\nsecret\n'], false, true)).out, '')
})

test('records a new second factor in the audit log, without its secret', async () => {
  const file = fileIn('{"app_key": "a key of at least thirty-two characters"}')
  await run(file, ['ann\nsecret\nsecret\n'], false, true)
  const text = readFileSync(join(dirname(file), '.logs', 'audit.log'), 'utf8')
  assert.match(text, /"what":"admin\.user, admin\.password and admin\.totp set"/)
  assert.doesNotMatch(text, new RegExp(loadConfig(file).config['admin.totp']))
})

test('on a terminal, it asks as without the option', async () => {
  const file = fileIn()
  const { status, out } = await run(file, ['ann\r', 'secret\r', 'secret\r'], true, true)
  assert.equal(status, 0)
  assert.match(out, /\nSecret: [A-Z2-7]{32}\n/)
})

// ---- on a terminal ----

test('refuses input that is not UTF-8', async () => {
  const file = fileIn()
  const ran = await run(file, [Buffer.from('ann\xff\nsecret\nsecret\n', 'latin1')])
  assert.deepEqual([ran.status, ran.problem, existsSync(file)], [2, 'Standard input must be UTF-8\n', false])
})

test('adds a record to the audit log, for the server too if root runs it', async () => {
  const file = fileIn('{"app_key": "a key of at least thirty-two characters", "admin": {"user": "bob"}}')
  const folder = join(dirname(file), '.logs')
  mkdirSync(folder)
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(folder, 1234, 1235)
  const ran = await run(file, ['ann\nsecret\nsecret\n'])
  assert.deepEqual([ran.status, ran.problem], [0, ''])
  const { time, mac, ...record } = JSON.parse(readFileSync(join(folder, 'audit.log'), 'utf8')) as Record<string, unknown>
  assert.deepEqual(record, { seq: 1, by: 'passwd', user: 'ann', what: 'admin.user and admin.password set', from: 'bob', to: 'ann' })
  assert.equal(statSync(join(folder, 'audit.log')).uid, isRoot ? 1234 : process.getuid?.())
  chmodSync(folder, 0o500)
  rmSync(join(folder, 'audit.log'))
  mkdirSync(join(folder, 'audit.log'))
  const refused = await run(file, ['ann\nsecret\nsecret\n'])
  assert.equal(refused.status, 0)
  assert.match(refused.problem, /^Cannot write the log .*audit\.log: EISDIR[^]*Lines lost: 1/)
})

test('on a terminal it prompts, and echoes the name but never the password', async () => {
  const file = fileIn()
  const { status, problem, raw } = await run(file, ['an', 'n\r', 'secret', '\r', 'secret\r'], true)
  assert.equal(status, 0)
  assert.deepEqual(raw, [true, false])
  assert.equal(loadConfig(file).config['admin.user'], 'ann')
  assert.doesNotMatch(problem, /s\W*e\W*c/)
  const [name, ...others] = problem.split('\r\n')
  assert.match(name ?? '', /Username: .*ann$/)
  assert.deepEqual(others, ['Password (not shown): ', 'Password again: ', unrecorded])
})

test('does not echo a password typed before its prompt', async () => {
  const file = fileIn()
  const { status, problem } = await run(file, ['ann\rsecret\rsecret\r'], true)
  assert.equal(status, 0)
  assert.doesNotMatch(problem, /s\W*e\W*c/)
})

test('a line can be edited; arrows and other keys do not change it', async () => {
  const file = fileIn()
  const [up, home, functionKey] = ['\u001b[A', '\u001b[1;5H', '\u001bOP']
  const half = Buffer.from('é')
  const name = ['x\u007f\bann', up, home, functionKey, '\u001bz', '\t', half.subarray(0, 1), half.subarray(1), '\r']
  const { status } = await run(file, [...name, 'wrong\u0015secret\r', 'secret\n'], true)
  assert.equal(status, 0)
  const { config } = loadConfig(file)
  assert.equal(config['admin.user'], 'anné')
  assert.equal(await check.matches('secret', config['admin.password']), true)
})

test('on a terminal it prompts again until the rules are met', async () => {
  const file = fileIn()
  const rounds = ['\rsecret\rsecret\r', 'ann\r123\r123\r', 'ann\rsecret\rother1\r', 'ann\rsecret\rsecret\r']
  const { status, problem } = await run(file, rounds, true)
  assert.equal(status, 0)
  assert.deepEqual(
    [...problem.matchAll(/(Username c|Password m|Passwords d).*/g)].map(([line]) => line),
    ['Username cannot be empty', 'Password must be at least 6 characters', 'Passwords do not match'],
  )
})

const cancelled: [what: string, typed: string[]][] = [
  ['Ctrl-C at the name', ['an\u0003']],
  ['Ctrl-D at the password', ['ann\r\u0004']],
  ['Ctrl-C at the second password', ['ann\rsecret\rsec\u0003']],
  ['a closed terminal', ['ann\rsecret']],
  ['a terminal closed within a key sequence', ['ann\u001b[']],
]

for (const [what, typed] of cancelled) {
  test(`exits, changes nothing and restores the terminal: ${what}`, async () => {
    const file = fileIn()
    const { status, problem, raw } = await run(file, typed, true)
    assert.deepEqual([status, raw, existsSync(file)], [1, [true, false], false])
    assert.match(problem, /\r\nNothing was changed\n$/)
  })
}

test('Ctrl-D within a line does nothing', async () => {
  const file = fileIn()
  assert.equal((await run(file, ['a\u0004nn\rsecret\rsecret\r'], true)).status, 0)
  assert.equal(loadConfig(file).config['admin.user'], 'ann')
})
