// An application served over TLS, and connections to it.
import { once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { createApp } from '../support/app.ts'
import { writeFiles } from '../support/application.ts'
import { makeCertificate } from '../support/certificate.ts'
import { cutAtEnd, cutToo } from '../support/connection.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const files = {
  'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs' }],
  'a.mjs': `export default async ({ secure, method, readText }) => {
    if (method === 'POST') await readText()
    return { secure }
  }`,
}

/** Creates a folder with an application and its certificate `first`, configured as `tls/cert.pem`. */
export function makeFolder() {
  const folder = temporaryFolder()
  writeFiles(folder, { ...files, 'tls/.keep': '' })
  const use = (name: string): void => {
    const made = makeCertificate(folder, name)
    copyFileSync(made.cert, join(folder, 'tls/cert.pem'))
    copyFileSync(made.key, join(folder, 'tls/key.pem'))
  }
  use('first')
  return { folder, use }
}

export const config = {
  'server.port': 0,
  'log.console': false,
  'server.tls.cert': 'tls/cert.pem',
  'server.tls.key': 'tls/key.pem',
}

export async function startSecure(t: Pick<TestContext, 'after'>, more: Readonly<Record<string, unknown>> = {}) {
  const { folder, use } = makeFolder()
  cutAtEnd(t)
  const app = createApp({ folder, config: { ...config, ...more } })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  return { app, folder, use, ...(await app.start()) }
}

export async function connectTls(t: Pick<TestContext, 'after'>, port: number): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  socket.on('error', () => {})
  cutToo(t, socket)
  await once(socket, 'secureConnect')
  return socket
}

export async function ask(socket: TLSSocket): Promise<string> {
  socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n')
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString()
}
