import assert from 'node:assert/strict'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { connect, getCiphers, type ConnectionOptions } from 'node:tls'
import { createApp } from '../support/app.ts'
import { ConfigError, parseConfig, type LoadedConfig } from '../../lib/config/load.ts'
import { CertificateInUse, readCertificates, warningsOfTime } from '../../lib/tls/certificates.ts'
import { startSecure } from '../core/listener-support.ts'
import { writeFiles } from '../support/application.ts'
import { makeCertificate } from '../support/certificate.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const dayMs = 86_400_000
const inDays = (days: number): Date => new Date(Date.now() + days * dayMs)

function loadedWith(folder: string, cert = 'c.pem', key = 'c.key'): LoadedConfig {
  return parseConfig({ 'server.tls.cert': cert, 'server.tls.key': key }, folder)
}

/** Returns the negotiated cipher suite, or the code of the error. */
async function negotiate(port: number, options: ConnectionOptions): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
  try {
    await once(socket, 'secureConnect')
    return socket.getCipher().name
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? ''
  } finally {
    socket.destroy()
  }
}

describe('the TLS of a server', () => {
  for (const rsa of [false, true]) {
    it(`accepts only ECDHE with AEAD for TLS 1.2, with a key of ${rsa ? 'RSA' : 'an elliptic curve'}`, async (t) => {
      const folder = temporaryFolder()
      makeCertificate(folder, 'c', { rsa })
      const app = createApp({ folder, config: { 'server.port': 0, 'log.console': false, server: { tls: { cert: 'c.pem', key: 'c.key' } } } })
      t.after(async () => {
        await app.stop()
        app.closeLogs()
      })
      const { port } = await app.start()
      const offered = getCiphers().filter((name) => !name.startsWith('tls_')).map((name) => name.toUpperCase())
      const taken: string[] = []
      for (const ciphers of offered) {
        const name = await negotiate(port, { maxVersion: 'TLSv1.2', ciphers: `${ciphers}@SECLEVEL=0` }).catch(() => '')
        if (name === ciphers) taken.push(name)
      }
      const kind = rsa ? 'RSA' : 'ECDSA'
      const right = ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].map((name) => `ECDHE-${kind}-${name}`)
      assert.deepEqual(taken.sort(), right)
      assert.match(await negotiate(port, { minVersion: 'TLSv1.3' }), /^TLS_/)
      const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
      assert.match(await negotiate(port, old), /^(ERR_SSL|EPROTO|ECONNRESET)/)
    })
  }

  it('is unchanged after a renewal of the certificate', async (t) => {
    const { app, port } = await startSecure(t)
    await app.control.apply({ type: 'certificates.reload' })
    const of12 = (ciphers: string): Promise<string> => negotiate(port, { maxVersion: 'TLSv1.2', ciphers })
    assert.equal(await of12('ECDHE-ECDSA-AES128-GCM-SHA256'), 'ECDHE-ECDSA-AES128-GCM-SHA256')
    assert.match(await of12('ECDHE-ECDSA-AES128-SHA'), /^ERR_SSL/)
  })
})

describe('a private key', () => {
  it('that is encrypted is refused with a message, in each of its forms', () => {
    const folder = temporaryFolder()
    makeCertificate(folder, 'c')
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    for (const type of ['pkcs8', 'pkcs1'] as const) {
      const key = privateKey.export({ type, format: 'pem', cipher: 'aes-128-cbc', passphrase: 'secret' })
      writeFileSync(join(folder, 'c.key'), key)
      const problem = /server\.tls\.key "c\.key" is encrypted, and nobody can enter its passphrase: store it without one/
      assert.throws(() => readCertificates(loadedWith(folder)), (error) => error instanceof ConfigError && problem.test(error.message))
    }
  })
})

describe('the validity of a certificate', () => {
  const rows: readonly (readonly [from: number, to: number, warning: RegExp | undefined])[] = [
    [-1, 15, undefined],
    [-1, 13.5, /^the certificate of server\.tls\.cert ends on \d{4}-\d\d-\d\d, in 13 days: renew it, then reload$/],
    [-1, 1.5, /, in 1 day:/],
    [-1, 0.5, /, in less than a day:/],
    [-2, -1, /^the certificate of server\.tls\.cert ended on \d{4}-\d\d-\d\d: renew it, then reload$/],
    [1, 90, /^the certificate of server\.tls\.cert is not valid before /],
  ]
  for (const [from, to, warning] of rows) {
    it(`from ${from} to ${to} days from now ${warning === undefined ? 'causes no warning' : 'causes a warning'}`, () => {
      const { cert } = makeCertificate(temporaryFolder(), 'c', { from: inDays(from), to: inDays(to) })
      const warnings = warningsOfTime(new X509Certificate(readFileSync(cert)), Date.now())
      assert.equal(warnings.length, warning === undefined ? 0 : 1)
      if (warning !== undefined) assert.match(warnings.join(), warning)
    })
  }

  it('causes a warning and a log line, until a reload reads another certificate', async (t) => {
    const { app, folder } = await startEnding(t)
    assert.match(app.warnings().join(), /ends on .*, in 2 days: renew it/)
    app.flushLogs()
    assert.match(readFileSync(join(folder, '.logs/svc.log'), 'utf8'), /\[WARN \] \[server\] the certificate of server\.tls\.cert ends on /)
    makeCertificate(folder, 'c')
    await app.control.apply({ type: 'certificates.reload' })
    assert.deepEqual(app.warnings().filter((warning) => warning.includes('certificate')), [])
  })

  it('is logged once a day', (t) => {
    t.mock.timers.enable({ apis: ['setInterval', 'Date'], now: Date.now() })
    const folder = temporaryFolder()
    makeCertificate(folder, 'c', { to: inDays(2.5) })
    const lines: string[] = []
    const certificate = new CertificateInUse(loadedWith(folder))
    certificate.report((line) => lines.push(line))
    for (let day = 0; day < 3; day += 1) t.mock.timers.tick(dayMs)
    certificate.close()
    t.mock.timers.tick(3 * dayMs)
    assert.deepEqual(lines.map((line) => /in \d day|in less|ended/.exec(line)?.[0]), ['in 2 day', 'in 1 day', 'in less', 'ended'])
  })
})

describe('an unreadable certificate at a reload', () => {
  it('causes a warning until a reload succeeds; the old one stays in use', async (t) => {
    const { app, folder } = await startEnding(t)
    rmSync(join(folder, 'c.key'))
    await assert.rejects(app.control.apply({ type: 'certificates.reload' }), /server\.tls\.key cannot be read: ENOENT/)
    assert.match(app.warnings().join('\n'), /^the old certificate stays in use: Cannot load .*server\.tls\.key cannot be read: ENOENT/m)
    makeCertificate(folder, 'c')
    await app.control.apply({ type: 'certificates.reload' })
    assert.doesNotMatch(app.warnings().join('\n'), /certificate/)
  })
})

/** Starts a server whose certificate expires in two days. */
async function startEnding(t: TestContext) {
  const folder = temporaryFolder()
  makeCertificate(folder, 'c', { to: inDays(2.5) })
  writeFiles(folder, { 'routes/a.json': [] })
  const tls = { cert: 'c.pem', key: 'c.key' }
  const app = createApp({ folder, config: { 'server.port': 0, 'log.console': false, server: { tls } } })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  await app.start()
  return { app, folder }
}
