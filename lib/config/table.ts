/**
 * The configuration: one row per key, which drives loading, checking, saving and `docs/configuration.md`. The
 * shipped `svc.json` lists the same keys in the same order; a test compares them.
 */
import { checkMetricsToken } from '../access/metrics-token.ts'
import { checkRecoveryHash } from '../access/recovery-codes.ts'
import { checkTotpSecret } from '../access/totp.ts'
import { checkAddressEntry } from '../http/address-list.ts'
import { checkAllowedHost } from '../http/host.ts'
import { checkTrustedOrigin } from '../http/origin.ts'
import { checkPrefix } from '../http/prefix.ts'
import { traceModules } from '../log/trace.ts'
import { problemOfRedisUrl } from './redis-url.ts'
import { checkFallback, checkFileName, checkHostToBind, checkPasswordHash, checkPath } from './checks.ts'
import { checkRight, checkTypes } from './checks.ts'
import type { AnyObject } from './objects.ts'
import type { Row, ValueOf } from '../base/value.ts'

/** A row of the table: of a single value, or of an object of any content. */
export type KeyRow = Row | ObjectRow

interface ObjectRow {
  readonly kind: 'object'
  readonly default: AnyObject
  /** Returns what a value must be, `must be ...`; undefined if it is valid. */
  readonly check?: (value: AnyObject) => string | undefined
  readonly meaning: string
}

type TraceKey = `trace.${(typeof traceModules)[number]}`
type TraceRow = { readonly kind: 'boolean'; readonly default: true; readonly meaning: string }

const traceRow: TraceRow = {
  kind: 'boolean', default: true,
  meaning: 'Write DEBUG and INFO lines of this module. The admin panel can switch it, too.',
}
const tracePairs = traceModules.map((module) => [`trace.${module}`, traceRow])
const traceRows = Object.fromEntries(tracePairs) as Record<TraceKey, TraceRow> // Object.fromEntries forgets the names.

/** Every key of `svc.json`: its kind, range, default and meaning. */
export const configTable = {
  'app.env': {
    kind: 'choice', choices: ['prod', 'dev'], default: 'prod',
    meaning: '`prod` protects the admin panel and hides stack traces. `dev`, for your own machine, does neither.',
  },
  app_key: {
    kind: 'string', default: '', secret: true,
    meaning: 'Signs CSRF and resource-id tokens. Empty in `dev`: a built-in, public key; '
      + 'in `prod`: a random key for the lifetime of the process, with a warning.',
  },
  app_key_previous: {
    kind: 'list', default: [], secret: true, check: (key) => (key === '' ? 'must not be empty' : undefined),
    meaning: 'Keys that only verify tokens: open forms then survive a change of `app_key`.',
  },

  'server.host': {
    kind: 'string', default: '127.0.0.1', check: checkHostToBind,
    meaning: 'The address to listen on. `0.0.0.0` or `::`: all addresses.',
  },
  'server.port': {
    kind: 'integer', min: 0, max: 65535, default: 8080,
    meaning: 'The port. 0: any free one; the log contains it.',
  },
  'server.trusted_proxies': {
    kind: 'list', default: [], check: checkAddressEntry,
    meaning: 'Addresses or CIDR blocks whose `X-Forwarded-For`, `-Proto`, `-Host` and `-Prefix` are trusted. '
      + 'The client is the right-most address that is not trusted.',
  },
  'server.prefix': {
    kind: 'string', default: '', check: checkPrefix,
    meaning: 'The path, such as `/app`, [below which](recipes/proxy.md#below-a-path) a proxy serves the application. '
      + 'It is taken off requests. Links, redirects and the paths of cookies begin with it, unless a proxy sends '
      + '`X-Forwarded-Prefix`.',
  },
  'server.trusted_origins': {
    kind: 'list', default: [], check: checkTrustedOrigin,
    meaning: 'Other origins that may send state-changing and WebSocket requests: `https://app.example.org`, or the '
      + 'origin of an app or browser extension, such as `capacitor://localhost`.',
  },
  'server.allowed_hosts': {
    kind: 'list', default: [], check: checkAllowedHost,
    meaning: 'Host names, with or without a port; `*.example.org` matches every subdomain. When set, any other Host '
      + 'gets 400, except for `/svc-ready` and `/svc-ping`.',
  },
  'server.body_limit_kb': {
    kind: 'integer', min: 1, max: 1_048_576, default: 1024,
    meaning: 'The largest request body in KiB. A larger one gets 413 and is not read further.',
  },
  'server.header_timeout_s': {
    kind: 'integer', min: 1, max: 3600, default: 10,
    meaning: 'Seconds for the header of a request to arrive, or `server.request_timeout_s` if that is less.',
  },
  'server.request_timeout_s': {
    kind: 'integer', min: 1, max: 86_400, default: 300,
    meaning: 'Seconds for a whole request to arrive, its body included.',
  },
  'server.body_idle_timeout_s': {
    kind: 'integer', min: 1, max: 3600, default: 30,
    meaning: 'Seconds that a client may pause while sending a body; then 408. A body slower than 1 KiB in 60 seconds '
      + 'also gets 408.',
  },
  'server.send_idle_timeout_s': {
    kind: 'integer', min: 1, max: 3600, default: 60,
    meaning: 'Seconds that a client may stop reading its response; then its connection is closed.',
  },
  'server.keep_alive_timeout_s': {
    kind: 'integer', min: 1, max: 3600, default: 65,
    meaning: 'Seconds that an idle connection stays open. Set it longer than the keep-alive timeout of the proxy.',
  },
  'server.drain_delay_s': {
    kind: 'integer', min: 0, max: 3600, default: 0,
    meaning: 'Seconds at the start of a stop during which the server still serves but is not ready.',
  },
  'server.stop_timeout_s': {
    kind: 'integer', min: 1, max: 3600, default: 30,
    meaning: 'Seconds after which a stop aborts everything still running.',
  },
  'server.max_connections_per_ip': {
    kind: 'integer', min: 0, max: 1_000_000, default: 0,
    meaning: 'Maximum open connections per client address. 0: no limit.',
  },
  'server.tls.cert': {
    kind: 'string', default: '', check: (file) => (file === '' ? undefined : checkPath(file)),
    meaning: 'The file of the certificate with its chain, in PEM. With `server.tls.key`: HTTPS.',
  },
  'server.tls.key': {
    kind: 'string', default: '', check: (file) => (file === '' ? undefined : checkPath(file)),
    meaning: 'The file of the certificate\'s private key, in PEM.',
  },
  'server.processes': {
    kind: 'integer or auto', min: 1, max: 1024, default: 1,
    meaning: '[Processes](scaling.md) that share the port; `auto`: one for each core.',
  },
  'server.hang_trace_s': {
    kind: 'integer or auto', min: 0, max: 86_400, default: 'auto',
    meaning: 'Seconds after which a blocked event loop is logged, '
      + '[with what blocks it](operations.md#a-process-that-hangs). `auto`: 5 under a service manager, else 0. '
      + '0: never.',
  },
  'server.hang_timeout_s': {
    kind: 'integer', min: 0, max: 86_400, default: 60,
    meaning: 'With several processes: seconds after which an unresponsive one is killed and replaced. 0: never.',
  },

  'shared.url': {
    kind: 'string', default: '', secret: true,
    check: (url) => (url === '' ? undefined : problemOfRedisUrl(url)),
    meaning: 'The Redis or Valkey server for the state that several machines share: '
      + '`redis://[user:password@]host[:port][/database]`, `rediss://` for TLS, or '
      + '`redis+unix:///path/of/socket[?db=database]`. User and password are percent-encoded; the password '
      + 'may come [from elsewhere](#which-file).',
  },
  'shared.name': {
    kind: 'string', default: 'svc',
    check: (name) => (/^[\w.-]{1,64}$/.test(name) ? undefined : 'must have 1 to 64 of A-Z a-z 0-9 _ . -'),
    meaning: 'The prefix of every key in the engine: several applications can share one. A server with '
      + 'this name and another `app_key` is refused.',
  },

  'admin.enabled': {
    kind: 'boolean', default: true,
    meaning: '`false`: the only admin paths are ping, slow and ready.',
  },
  'admin.user': {
    kind: 'string', default: '',
    meaning: 'The admin\'s name. Empty: setup is required.',
  },
  'admin.password': {
    kind: 'string', default: '', secret: true, check: checkPasswordHash,
    meaning: 'The hash of the admin\'s password, never the password itself. Empty: setup is required.',
  },
  'admin.secret': {
    kind: 'string', default: '', secret: true,
    meaning: 'Signs the admin cookie. Emptying it ends all admin sessions; the next setup or login creates a new one.',
  },
  'admin.totp': {
    kind: 'string', default: '', secret: true, check: checkTotpSecret,
    meaning: 'The secret of the [second factor](security.md#the-second-factor), in base32; set it with '
      + '`svc passwd --totp`. Empty: the password is enough.',
  },
  'admin.recovery_codes': {
    kind: 'list', default: [], secret: true, check: checkRecoveryHash,
    meaning: 'Hashes of the recovery codes, each valid once: `svc passwd --totp` makes ten, and a sign-in removes the '
      + 'one that it used.',
  },
  'admin.hardened': {
    kind: 'boolean', default: false,
    meaning: '`true`: scrypt (PBKDF2 where the crypto library has none), a random secret of 32 bytes and HMAC-SHA256 '
      + 'instead of MD5.',
  },
  'admin.allow': {
    kind: 'list', default: [], check: checkAddressEntry,
    meaning: 'Addresses or CIDR blocks that may reach `/svc-*`, except for ping, slow, ready and the live script. '
      + 'Other clients get 404. Empty: everybody.',
  },
  'admin.metrics_token': {
    kind: 'string', default: '', secret: true, check: checkMetricsToken,
    meaning: 'Lets a program read `/svc-metrics` with `Authorization: Bearer`: at least 32 characters. Empty: only '
      + 'administrators can.',
  },
  'admin.setup_token': {
    kind: 'choice', choices: ['auto', 'on', 'off'], default: 'auto',
    meaning: 'Whether setup requires the one-time token from the log. `auto`: unless the request comes from this '
      + 'machine, to a name of this machine, and no service manager has started the server.',
  },

  'session.lifetime': {
    kind: 'integer', min: 0, max: 5_256_000, default: 60,
    meaning: 'Minutes that an admin session lasts. 0: no limit.',
  },

  'paths.root': {
    kind: 'string', default: '.', check: checkPath,
    meaning: 'The folder of the application: actions and views are relative to it and never lie outside.',
  },
  'paths.routes': {
    kind: 'string', default: 'routes', check: checkPath,
    meaning: 'The folder of route files: every `*.json` directly in it.',
  },
  'paths.jobs': {
    kind: 'string', default: 'jobs', check: checkPath,
    meaning: 'The folder of [job files](jobs.md): every `*.json` directly in it. It may be missing.',
  },
  'paths.middleware': {
    kind: 'string', default: 'routes/middleware', check: checkPath,
    meaning: 'Middleware modules and their `config.json`.',
  },
  'paths.errors': {
    kind: 'string', default: 'routes/errors', check: checkPath,
    meaning: 'Views for error pages; inside `paths.root`. It may be missing.',
  },
  'paths.maintenance': {
    kind: 'string', default: 'maintenance.html', check: checkPath,
    meaning: 'While this file exists, [visitors get it](operations.md#maintenance) instead of the application.',
  },
  'paths.cache': {
    kind: 'string', default: '.cached', check: checkPath,
    meaning: 'Files that the server can recreate, such as compiled views.',
  },
  'paths.log': {
    kind: 'string', default: '.logs', check: checkPath,
    meaning: 'All log files.',
  },
  'paths.temp': {
    kind: 'string', default: '.cached/temp', check: checkPath,
    meaning: 'Uploads of running requests. A start removes those of killed processes.',
  },
  'paths.data': {
    kind: 'string', default: '.data', check: checkPath,
    meaning: 'The folder of `svc.db`, which has the sessions of the store `data`, and without `shared.url` '
      + '[jobs](jobs.md) and [durable events](streaming.md#durable-channels-and-queues). It is made when one of them '
      + 'needs it.',
  },
  'paths.public': {
    kind: 'string', default: '', check: (path) => (path === '' ? undefined : checkPath(path)),
    meaning: 'Static files. Empty: none are served.',
  },

  'static.fallback': {
    kind: 'string', default: '', check: checkFallback,
    meaning: 'The page of a single-page application, relative to `paths.public`. Requests for pages get it, '
      + 'with 200, if no route and no file has their path. Empty: they get 404.',
  },
  'static.types': {
    kind: 'object', default: {}, check: checkTypes,
    meaning: 'Types of static files by their extension, besides the known ones: `{"glb": "model/gltf-binary"}`.',
  },
  'static.immutable': {
    kind: 'list', default: [], check: (pattern) => (pattern === '' ? 'must not be empty' : undefined),
    meaning: 'Static files whose content never changes, as paths below `paths.public`: clients keep them for a year. '
      + '`*` is any text without `/`, `?` one character, `**` any folders.',
  },

  'log.file': {
    kind: 'string', default: 'svc.log', check: checkFileName,
    meaning: 'The file name of the general log.',
  },
  'log.level': {
    kind: 'choice', choices: ['debug', 'info', 'warn', 'error', 'fatal'], default: 'info',
    meaning: 'The lowest level that is written.',
  },
  'log.console': {
    kind: 'boolean', default: true,
    meaning: 'Print the general log to the console, too.',
  },
  'log.max_size_mb': {
    kind: 'integer', min: 1, max: 100_000, default: 10,
    meaning: 'MiB at which the general log rotates.',
  },
  'log.max_files': {
    kind: 'integer', min: 0, max: 100_000, default: 0,
    meaning: 'Rotated files to keep. 0: all of them.',
  },
  'log.format': {
    kind: 'choice', choices: ['text', 'json'], default: 'text',
    meaning: '`json`: one object per line.',
  },

  'access_log.enabled': {
    kind: 'boolean', default: true,
    meaning: 'Write the access log, a line per request.',
  },
  'access_log.file': {
    kind: 'string', default: 'access.log', check: checkFileName,
    meaning: 'The file name of the access log, which the server does not rotate.',
  },
  'access_log.format': {
    kind: 'choice', choices: ['spec', 'common', 'combined', 'json'], default: 'spec',
    meaning: '`common` adds the bytes to a line of `spec`, `combined` the referrer and the user agent as well.',
  },
  'access_log.skip': {
    kind: 'list', default: [],
    check: (text) => (/^\/[!-"$->@-~]*$/.test(text) ? undefined : 'must be the start of a path, such as /svc-ready'),
    meaning: 'How the paths of requests begin that are not logged, such as `/svc-ready`. The metrics count them.',
  },

  ...traceRows,

  'pool_http.workers': {
    kind: 'integer', min: 1, max: 1_000_000, default: 1024,
    meaning: 'Plain requests that run concurrently.',
  },
  'pool_http.queue_size': {
    kind: 'integer', min: 0, max: 1_000_000, default: 4096,
    meaning: 'Plain requests that may wait for a worker, or while the process is busy for 100 ms or longer; '
      + 'further ones get 503.',
  },
  'pool_http.alert_pct': {
    kind: 'integer', min: 1, max: 100, default: 75,
    meaning: 'The percentage of busy workers, or of the queue, from which `/svc-status` raises `pool_http.alert`. A '
      + 'request that has waited for half of `pool_http.max_wait_ms` raises it too.',
  },
  'pool_http.max_wait_ms': {
    kind: 'integer', min: 1, max: 3_600_000, default: 3000,
    meaning: 'Milliseconds that a request may wait in the queue; then it gets 503.',
  },

  'pool_ws.workers': {
    kind: 'integer', min: 0, max: 1_000_000, default: 1000,
    meaning: 'Concurrent WebSockets.',
  },
  'pool_ws.max_message_kb': {
    kind: 'integer', min: 1, max: 1_048_576, default: 1024,
    meaning: 'The largest WebSocket message that is accepted, in KiB.',
  },

  'pool_rest.workers_sse': {
    kind: 'integer', min: 0, max: 1_000_000, default: 1000,
    meaning: 'Concurrent SSE streams.',
  },
  'pool_rest.workers_longpoll': {
    kind: 'integer', min: 0, max: 1_000_000, default: 1000,
    meaning: 'Concurrent long polls.',
  },
  'pool_rest.queue_size': {
    kind: 'integer', min: 0, max: 1_000_000, default: 1000,
    meaning: 'Streams and long polls that may wait for a worker; further ones get 503.',
  },
  'pool_rest.stream_timeout_s': {
    kind: 'integer', min: 0, max: 2_000_000, default: 3600,
    meaning: 'Maximum seconds that a stream or long poll lasts. 0: no limit.',
  },

  'pool_jobs.workers': {
    kind: 'integer', min: 0, max: 1000, default: 4,
    meaning: '[Jobs](jobs.md) that a process runs concurrently. 0: it runs none, and only enqueues.',
  },
  'data.sync': {
    kind: 'choice', choices: ['normal', 'full'], default: 'normal',
    meaning: '`full`: what is in `paths.data` survives a power cut too, and each transaction waits for the disk. '
      + '`normal`: a power cut may lose the last moments; the end of a process loses nothing.',
  },

  'monitor.interval_s': {
    kind: 'integer', min: 1, max: 3600, default: 5,
    meaning: 'Seconds between two measurements of the monitor.',
  },

  'permission.keep': {
    kind: 'list', default: [], check: checkRight,
    meaning: 'Rights of [the permission model](operations.md#nodes-permission-model) that the application needs after '
      + 'the start: `child`, `worker`, `addon`, `wasi`, `ffi`.',
  },

  'dev.watch': {
    kind: 'boolean', default: true,
    meaning: 'Only in `dev`: apply saved files, and refresh open pages.',
  },
  'config.local': {
    kind: 'boolean', default: false,
    meaning: 'Setup and `passwd` save to [the local file](#the-local-file), even if it does not exist yet.',
  },
  cache_ram: {
    kind: 'boolean', default: true,
    meaning: 'Keep compiled views in memory, until their files change.',
  },
  cache_disk: {
    kind: 'boolean', default: true,
    meaning: 'Keep compiled views on disk, under `paths.cache`.',
  },

  settings: {
    kind: 'object', default: {},
    meaning: 'The [settings of the application](#settings-of-the-application), any JSON: `ctx.settings`.',
  },
  setup: {
    kind: 'object', default: {},
    meaning: 'Settings of the [built-in middleware](#settings-of-the-built-in-middleware), merged over `setup` of '
      + '`config.json`.',
  },
} as const satisfies Record<string, KeyRow>

/** A key of the configuration, dotted: `server.port`. */
export type ConfigKey = keyof typeof configTable

/** The configuration, flat: `config['server.port']` is a number, `config['app.env']` is `'prod' | 'dev'`. */
export type Config = { readonly [Key in ConfigKey]: ValueOfKey<(typeof configTable)[Key]> }
type ValueOfKey<R extends KeyRow> = R extends Row ? ValueOf<R> : AnyObject

/** Every key, in the order of the table. */
export const configKeys = Object.keys(configTable) as readonly ConfigKey[] // Object.keys forgets the names it returns.
