/** The proxies of docs/deploy and docs/recipes, run with their own programs: Debian's packages `nginx-light`, `haproxy`, `caddy`. */
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { writeFiles } from './application.ts'
import { makeCertificate } from './certificate.ts'
import { freePort } from './free-port.ts'
import { root } from './launch.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** A proxy that accepts TLS connections on 127.0.0.1. */
export interface Proxy {
  readonly url: string
  readonly port: number
  /** Where its logs are, those that the file of docs/deploy names. */
  readonly folder: string
  /** Its process id. */
  readonly pid: number
  /** Throws with its output if it logged a problem or has ended. */
  check(): void
}

/** What a file of docs/deploy is made fit with; nothing else of it is changed. */
interface Places {
  readonly folder: string
  readonly port: number
  readonly plainPort: number
  readonly cert: string
  readonly key: string
}

/** Nodes stand in the files as `10.0.0.11:8080` and on; the ports are those of 127.0.0.1 in their place. */
function nodesHere(text: string, ports: readonly number[]): string {
  return ports.reduce((rest, port, at) => rest.replaceAll(`10.0.0.${11 + at}:8080`, `127.0.0.1:${port}`), text)
}

/**
 * Starts nginx with a site of docs/deploy. It has one process unless told otherwise, and ends with the test.
 * @param change what else is put in place of addresses
 * @throws Error with its complaint when the site is wrong, or with what to install
 */
export function startNginx(
  t: Pick<TestContext, 'after'>,
  file: string,
  ports: readonly number[],
  change: (site: string) => string = (site) => site,
): Promise<Proxy> {
  return startNginxSite(t, nodesHere(change(readFileSync(join(root, 'docs/deploy', file), 'utf8')), ports))
}

/** Starts nginx with the text of a site that listens on 443; see `startNginx`. */
export async function startNginxSite(t: Pick<TestContext, 'after'>, text: string): Promise<Proxy> {
  const places = await makePlaces()
  const { folder, port, plainPort, cert, key } = places
  const site = text
    .replaceAll(/^ *listen \[::\].*\n/gm, '')
    .replaceAll('/var/log/nginx/', `${folder}/`)
    .replace('listen 443 ', `listen 127.0.0.1:${port} `)
    .replace('listen 80;', `listen 127.0.0.1:${plainPort};`)
    .replace(/ssl_certificate +\S+;/, `ssl_certificate ${cert};`)
    .replace(/ssl_certificate_key +\S+;/, `ssl_certificate_key ${key};`)
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`)
  const config = `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr crit;
    events { worker_connections 16384; }
    http { access_log off; gzip on; types { text/css css; } ${folders.join(' ')}\n${site}\n}`
  writeFiles(folder, { 'nginx.conf': config })
  const options = ['-e', 'stderr', '-c', join(folder, 'nginx.conf')]
  tryConfiguration('nginx', ['-t', ...options], 'nginx-light')
  return run(t, 'nginx', options, places)
}

/** Starts HAProxy with a configuration of docs/deploy below a section `global` of the test's own; see `startNginx`. */
export function startHaproxy(t: Pick<TestContext, 'after'>, file: string, ports: readonly number[]): Promise<Proxy> {
  return startHaproxyText(t, nodesHere(readFileSync(join(root, 'docs/deploy', file), 'utf8'), ports))
}

/** Starts HAProxy with the text of a configuration that listens on 443; see `startHaproxy`. */
export async function startHaproxyText(t: Pick<TestContext, 'after'>, configuration: string): Promise<Proxy> {
  const places = await makePlaces()
  const { folder, port, plainPort, cert, key } = places
  const text = configuration
    .replace('bind :443 ', `bind 127.0.0.1:${port} `)
    .replace('bind :80\n', `bind 127.0.0.1:${plainPort}\n`)
    .replace('/etc/haproxy/svc.pem', join(folder, 'svc.pem'))
    .replaceAll('abns@svc_once', `abns@svc_once_${port}`)
  writeFiles(folder, {
    'svc.pem': readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'),
    'haproxy.cfg': `global\n    log ${folder}/none local0\n\n${text}`,
  })
  const options = ['-f', join(folder, 'haproxy.cfg')]
  tryConfiguration('haproxy', ['-c', ...options], 'haproxy')
  return run(t, 'haproxy', ['-db', '-q', ...options], places)
}

/** Starts Caddy with a Caddyfile whose site is `www.example.org`; see `startNginx`. It needs no certificate of a public authority. */
export async function startCaddy(t: Pick<TestContext, 'after'>, text: string): Promise<Proxy> {
  const places = await makePlaces()
  const { folder, port, cert, key } = places
  const head = `{\n\tadmin off\n\tauto_https off\n\tlog {\n\t\tlevel ERROR\n\t}\n\tstorage file_system ${folder}\n}\n`
  const site = `https://127.0.0.1:${port} {\n\tbind 127.0.0.1\n\ttls ${cert} ${key}\n`
  writeFiles(folder, { Caddyfile: head + text.replace('www.example.org {\n', site) })
  const options = ['--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile']
  tryConfiguration('caddy', ['validate', ...options], 'caddy')
  return run(t, 'caddy', ['run', ...options], places)
}

async function makePlaces(): Promise<Places> {
  const folder = temporaryFolder()
  return { folder, port: await freePort(), plainPort: await freePort(), ...makeCertificate(folder, 'site') }
}

/** Has the program judge its configuration: not even a warning is right. */
function tryConfiguration(program: string, args: readonly string[], debianPackage: string): void {
  const { error, status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (error !== undefined) throw new Error(`Cannot run ${program}: ${error.message}. Install it: apt-get install ${debianPackage}`)
  const said = `${stdout}${stderr}`
  if (status !== 0 || /\[(?:warn|WARNING|ALERT)\]/.test(said)) throw new Error(`${program} refuses its configuration:\n${said}`)
}

function run(t: Pick<TestContext, 'after'>, program: string, args: readonly string[], { port, folder }: Places): Proxy {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (complaints += piece))
  child.on('error', (error) => (complaints += error.message))
  t.after(() => child.kill('SIGKILL'))
  const check = (): void => {
    const told = complaints.replace(/^\{"level":"info".*\n/gm, '') // Caddy says which file it reads, whatever its log is told.
    if (child.exitCode !== null || told !== '') throw new Error(`${program}: ${told || 'it ended'}`)
  }
  return { url: `https://127.0.0.1:${port}`, port, folder, pid: child.pid ?? 0, check }
}
