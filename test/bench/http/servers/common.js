// What the servers of the benchmark share. Each is started as `node FILE FOLDER NAME`: the folder has the files of one
// workload, the name is the server's in the tables. It prints the port that it listens on.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { createRequire } from 'node:module'
import { join } from 'node:path'

/** The folder of the workload. */
export const folder = process.argv[2]
/** The name in the tables. */
export const name = process.argv[3]
/** The workload: name, path, status, fields and body of the answer, and the data of the page. */
export const workload = JSON.parse(readFileSync(join(folder, 'fixture.json'), 'utf8'))
/** Requires a peer. */
export const require = createRequire(new URL('../../peers/package.json', import.meta.url))
/** How long an idle connection is kept: what svc has by default, so that all send the same Keep-Alive field. */
export const keepAliveMs = 65_000

/** The bytes of the static file. */
export function readPhoto() {
  return readFileSync(join(folder, 'public', 'photo.jpg'))
}

/** Certificate and key of a workload over HTTPS; undefined for one over plain HTTP. */
export const tls = workload.tls
  ? { cert: readFileSync(join(folder, 'bench.pem')), key: readFileSync(join(folder, 'bench.key')) }
  : undefined

/** Listens with a server of node:http, or of node:https where the workload is over HTTPS. */
export function listen(handler) {
  const server = tls === undefined ? createServer(handler) : createSecureServer(tls, handler)
  server.keepAliveTimeout = keepAliveMs
  server.listen(0, '127.0.0.1', () => ready(server.address().port))
}

/** Says the port. */
export function ready(port) {
  console.log(`port ${port}`)
}
