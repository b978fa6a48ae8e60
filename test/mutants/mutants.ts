// Small faults in the rooms of `lib/`, each of a kind that a change could introduce unnoticed. `main.ts` puts them into a
// copy of the project, one at a time, and checks that a test fails.

/** One fault. */
export interface Mutant {
  /** The file, below `lib/`. */
  readonly file: string
  /** The text that it replaces, which occurs in the file exactly once. */
  readonly find: string
  readonly replace: string
  /** What no longer holds with it. */
  readonly breaks: string
  /** The tests to run first, as `test/run.js` takes them; those of the file's own room unless given. */
  readonly tests?: readonly string[]
}

export const mutants: readonly Mutant[] = [
  // Admin
  {
    file: 'access/cookie.ts',
    find: 'ageSeconds <= rules.lifetimeMinutes * 60',
    replace: 'ageSeconds < rules.lifetimeMinutes * 60',
    breaks: 'a cookie exactly as old as the lifetime is accepted',
  },
  {
    file: 'access/guard.ts',
    find: "if (ctx.method === 'POST' || row.change === 'always') return true",
    replace: "if (row.change === 'always') return true",
    breaks: 'a POST from another site is refused on every admin path',
  },
  {
    file: 'access/next-path.ts',
    find: 'return /^\\/(?![/\\\\])/.test(text)',
    replace: 'return /^\\/(?!\\/)/.test(text)',
    breaks: '`next` never leads to another host by a backslash',
  },
  {
    file: 'access/throttle.ts',
    find: '.length <= freeFailures &&',
    replace: '.length < freeFailures &&',
    breaks: 'the first ten failed sign-ins of a minute are answered at once',
  },
  {
    file: 'access/throttle.ts',
    find: '        waiting -= 1',
    replace: '        waiting -= 0',
    breaks: 'the fifty delayed answers are those that wait now, not those that ever did',
  },
  {
    file: 'access/allow-list.ts',
    find: 'const path = canonicalPath(ctx.path)',
    replace: 'const path = ctx.path',
    breaks: 'an encoded path does not lead past admin.allow',
  },
  {
    file: 'access/sign-in.ts',
    find: '    if (!(await codes.useTicket(ticket.id))) return again()\n',
    replace: '',
    breaks: 'a ticket is good for one attempt',
  },
  {
    file: 'access/sign-in.ts',
    find: "    if (code === '') {\n",
    replace: "    throttle.succeeded(ctx.ip)\n    if (code === '') {\n",
    breaks: 'the right password alone does not set the count of failed logins back',
  },
  {
    file: 'access/used-codes.ts',
    find: 'code.step <= step',
    replace: 'code.step < step',
    breaks: 'a code is good once',
  },
  {
    file: 'access/code-throttle.ts',
    find: 'if (!isKnown && oldest',
    replace: 'if (oldest',
    breaks: 'who is signed in is never refused',
  },
  {
    file: 'control/changes.ts',
    find: 'mergedCodes(usedCodes, usedCodesFile.read())',
    replace: 'mergedCodes(usedCodes, {})',
    breaks: 'a code that was used before a restart is not good after it',
    tests: ['access/second-factor.test'],
  },
  // Tokens
  {
    file: 'csrf/check.ts',
    find: "if (values.length > 1) return 'malformed'",
    replace: '',
    breaks: 'a form with two tokens is refused',
  },
  {
    file: 'csrf/token.ts',
    find: 'ageSeconds > lapseS ||',
    replace: 'ageSeconds >= lapseS ||',
    breaks: 'a token exactly as old as the lapse is valid',
  },
  {
    file: 'tokens/resource-id.ts',
    find: "bytes.toString('base64') !== payload || ",
    replace: '',
    breaks: 'another encoding of the same bytes is refused',
  },
  {
    file: 'tokens/resource-id.ts',
    find: "text.lastIndexOf('|')",
    replace: "text.indexOf('|')",
    breaks: 'an id may hold |',
  },
  {
    file: 'tokens/signature.ts',
    find: 'sign: (text: string): string => hmac(first, text)',
    replace: 'sign: (text: string): string => hmac(verifying[verifying.length - 1] as KeyObject, text)',
    breaks: 'earlier keys verify and never sign',
    tests: ['test/csrf/', 'test/tokens/'],
  },
  // Sessions and flash
  {
    file: 'session-stores/memory-store.ts',
    find: '      this.#entries.delete(id)\n      this.#entries.set(id, entry)',
    replace: '      this.#entries.set(id, entry)',
    breaks: 'the session dropped at the bound is the one that nobody has used for longest',
  },
  {
    file: 'session/session-data.ts',
    find: 'if (text === undefined ? removed.has(field) : set.get(field) === text) this.#changes',
    replace: 'this.#changes',
    breaks: 'what is set while a save is under way is saved too',
  },
  {
    file: 'session/cookie.ts',
    find: 'maxAgeS === undefined ? { path } : { path, maxAge: maxAgeS })\n  keepPrivate(ctx)',
    replace: 'maxAgeS === undefined ? { path } : { path, maxAge: maxAgeS })',
    breaks: 'an answer with a session cookie says Cache-Control: private',
  },
  {
    file: 'flash/bag.ts',
    find: 'Object.keys(bag).length === 0 ? undefined : bag',
    replace: 'bag',
    breaks: 'an empty bag is removed from the session',
  },
  // HTTP
  {
    file: 'http/origin.ts',
    find: "if (site === 'same-origin' || site === 'none') return 'same'",
    replace: "if (site === 'same-origin' || site === 'same-site' || site === 'none') return 'same'",
    breaks: 'a request of a sibling site counts as one from elsewhere',
  },
  {
    file: 'http/client-address.ts',
    find: '    if (!isProxy(ip)) break\n',
    replace: '',
    breaks: 'the client is the right-most address that is not trusted',
  },
  {
    file: 'http/cookie.ts',
    find: "if (sameSite === 'None' && !secure)",
    replace: "if (sameSite === 'None' && secure)",
    breaks: 'SameSite=None needs Secure',
  },
  {
    file: 'static/static-path.ts',
    find: 'const refusedPart = /\\/\\.|\\/\\/|\\\\/',
    replace: 'const refusedPart = /\\/\\.\\.|\\/\\/|\\\\/',
    breaks: 'files whose name begins with a dot are not served',
  },
  {
    file: 'static/conditional.ts',
    find: 'return start >= size ?',
    replace: 'return start > size ?',
    breaks: 'a range that begins at the end of the file is 416',
  },
  {
    file: 'http/multipart.ts',
    find: 'if (this.#parts > maxParts)',
    replace: 'if (this.#parts >= maxParts)',
    breaks: 'a form of a thousand parts is taken',
  },
  {
    file: 'http/escape-html.ts',
    find: "return '&#39;'",
    replace: "return ''",
    breaks: "' is escaped for HTML",
  },
  {
    file: 'core/connections.ts',
    find: 'if (!connection.isReading) return void socket.destroy()',
    replace: 'return void socket.destroy()',
    breaks: 'at a stop a connection in the midst of a body gets its answer whole before it is closed',
    tests: ['test/core/connections', 'test/core/stop'],
  },
  {
    file: 'core/respond.ts',
    find: '    addVary(ctx.outgoing)\n',
    replace: '',
    breaks: 'an answer that could have been compressed says Vary: Accept-Encoding',
  },
  {
    file: 'http/body.ts',
    find: 'if (this.#received > this.#options.maxBytes)',
    replace: 'if (this.#received >= this.#options.maxBytes)',
    breaks: 'a body of exactly the limit is taken',
  },
  {
    file: 'core/address-limit.ts',
    find: 'if (before >= most) {',
    replace: 'if (before > most) {',
    breaks: 'an address has at most as many connections as it may',
  },
  {
    file: 'http/header-list.ts',
    find: '    this.#remove(known.lower)\n',
    replace: '',
    breaks: 'a field that is set again stands once',
  },
  // Pools
  {
    file: 'core/pool.ts',
    find: 'if (this.#places.taken < this.#places.size ||',
    replace: 'if (this.#places.taken <= this.#places.size ||',
    breaks: 'a queue takes no more than its size',
  },
  {
    file: 'core/rest-pool.ts',
    find: "    else if (state === 'queued') this[kind].forget(parked)\n",
    replace: '',
    breaks: 'a client that leaves the queue frees its place',
    tests: ['test/core/server-parked'],
  },
  {
    file: 'core/rest-pool.ts',
    find: 'parked.deadlineAt > nowMs',
    replace: 'parked.deadlineAt < nowMs',
    breaks: 'a wait ends at its time-out, and not before',
    tests: ['test/core/server-parked'],
  },
  // Events
  {
    file: 'events/local-broker.ts',
    find: '    if (newer < 0) return { events: [], lastId, gap: true }\n',
    replace: '',
    breaks: 'a cursor ahead of the ring is told of a gap',
  },
  {
    file: 'events/queue.ts',
    find: '    await this.#putBack(event) // No client is left, or the next one wants another lease.\n',
    replace: '',
    breaks: 'an event that nobody took goes back',
  },
  {
    file: 'events/channel.ts',
    find: '    this.#waiting.delete(waiter)\n',
    replace: '',
    breaks: 'who has left a channel is woken no more, and lets it rest',
  },
  {
    file: 'events/sse.ts',
    find: 'StreamReply | undefined {\n    this.#leave()',
    replace: 'StreamReply | undefined {',
    breaks: 'a stream that has ended hears no more events',
  },
  // Routes
  {
    file: 'routing/trie.ts',
    find: 'method, path, end + 1, count)\n        if (found !== undefined) return found',
    replace: 'method, path, end + 1, count)\n        return found',
    breaks: 'a look-up comes back from a literal that leads nowhere',
  },
  {
    file: 'routing/trie.ts',
    find: 'if (end > start) {',
    replace: 'if (end >= start) {',
    breaks: 'an empty segment is no parameter',
  },
  {
    file: 'routing/registry.ts',
    find: 'for (const route of [...kept, ...routes])',
    replace: 'for (const route of [...routes, ...kept])',
    breaks: 'a system route answers before one of the application with its pattern',
  },
  {
    file: 'control/changes.ts',
    find: '      await restore()\n',
    replace: '',
    breaks: 'a route that could not be written to its file is not registered',
  },
  {
    file: 'modules/module-graph.ts',
    find: 'for (const importer of importers.get(file) ?? []) changed.add(importer)',
    replace: 'importers.get(file)',
    breaks: 'a module is loaded anew when one that it imports has changed',
  },
  // Middleware, JWT
  {
    file: 'chain/compose.ts',
    find: '    return this.#below\n  }',
    replace: '    return undefined\n  }',
    breaks: 'a middleware that does not await next() returns before what is below it',
  },
  {
    file: 'jwt/token.ts',
    find: 'if (nowS >= exp + rules.leeway_s)',
    replace: 'if (nowS > exp + rules.leeway_s)',
    breaks: 'a token has expired in the very second that exp names',
  },
  // Logs
  {
    file: 'log/log-file.ts',
    find: '.slice(0, -this.#maxFiles))',
    replace: '.slice(0, -this.#maxFiles - 1))',
    breaks: 'no more rotated files stay than max_files',
  },
  {
    file: 'log/line.ts',
    find: 'const controls = /[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]/',
    replace: 'const controls = /[\\x00-\\x1f\\x7f-\\x9f]/',
    breaks: 'line separators of Unicode cannot forge a line',
  },
  {
    file: 'log/appender.ts',
    find: 'if (this.#closed) return\n    this.flush()\n    const held',
    replace: 'if (this.#closed) return\n    const held',
    breaks: 'what is held is written before the log is closed',
  },
  {
    file: 'log/log-file.ts',
    find: '    const fd = this.#openFile()\n    this.close()\n',
    replace: '    const fd = this.#openFile()\n',
    breaks: 'a log that is reopened closes the file that it had',
  },
  // Metrics
  {
    file: 'metrics/histogram.ts',
    find: 'const rank = Math.ceil((percent / 100) * countOf(durations))',
    replace: 'const rank = Math.floor((percent / 100) * countOf(durations))',
    breaks: 'a percentile is that of the nearest rank',
  },
  {
    file: 'cluster/readings-host.ts',
    find: 'queueMicrotask(() => takeLast(known, changes))',
    replace: 'takeLast(known, changes)',
    breaks: 'the readings of a worker are taken in the order in which it sent them',
  },
  {
    file: 'metrics/app-readings.ts',
    find: `.replaceAll('"', '\\\\"')`,
    replace: '',
    breaks: 'a quote in a route name is escaped for Prometheus',
  },
  // Views
  {
    file: 'views/cache.ts',
    find: '    for (const path of kept.absent) if (versionOf(path) !== undefined) return false\n',
    replace: '',
    breaks: 'a view that appears where it is looked for first is taken from then on',
  },
  {
    file: 'views/parse.ts',
    find: '    if (block.branches.at(-1)?.condition === undefined) {',
    replace: '    if (false) {',
    breaks: 'a second @else is an error that names its line',
  },
  // WebSockets
  {
    file: 'websocket/message-reader.ts',
    find: 'if (!isUtf8(payload)) throw',
    replace: 'if (false) throw',
    breaks: 'a text that ends within a character is refused with 1007',
  },
  {
    file: 'websocket/outbox.ts',
    find: 'this.#gathered?.copy(grown, 0, 0, this.#length)',
    replace: '',
    breaks: 'messages that are sent in one turn arrive whole',
  },
  // Files
  {
    file: 'files/edit-file.ts',
    find: '    if (!isRestricted()) fsyncSync(descriptor)\n',
    replace: '',
    breaks: 'what is written back is on the disk before it is renamed',
  },
  {
    file: 'json/json-map.ts',
    find: 'if (depth > maxDepth)',
    replace: 'if (depth >= maxDepth)',
    breaks: 'JSON may be nested a hundred deep',
  },
  {
    file: 'base/value.ts',
    find: 'return value < row.min || value > row.max ?',
    replace: 'return value <= row.min || value > row.max ?',
    breaks: 'a key takes its smallest value',
  },
  // Several processes and machines
  {
    file: 'cluster/peer.ts',
    find: '    for (const { reject } of this.#waiting.values()) reject(disconnected())\n',
    replace: '',
    breaks: 'a call whose other side has ended is rejected',
  },
  {
    file: 'redis/resp.ts',
    find: 'if (this.#bytes + end - from > maxBytes)',
    replace: 'if (this.#bytes + end - from >= maxBytes)',
    breaks: 'a reply of Redis may be as long as the limit',
  },
  {
    file: 'control/desired-state.ts',
    find: 'entry.lasts !== true && entry.hides !== true',
    replace: 'entry.lasts !== true',
    breaks: 'a node that comes later does not bring back a route that was deleted',
    tests: ['test/control/', 'external/redis-nodes'],
  },
  // Start and stop
  {
    file: 'systemd/service.ts',
    find: 'if (forPid !== String(pid)) {',
    replace: 'if (forPid === undefined) {',
    breaks: 'a socket that was passed to another process is not used',
  },
  {
    file: 'core/listener.ts',
    find: 'for (const socket of idle) if (this.#idleBefore.has(socket)) retire(socket)',
    replace: 'for (const socket of idle) retire(socket)',
    breaks: 'at a stop a connection that has just become idle is given its time',
    tests: ['test/core/listener', 'test/core/stop'],
  },
  {
    file: 'core/server.ts',
    find: '    if (this.pool.waiting > 0) this.pool.forget(ctx)\n',
    replace: '',
    breaks: 'a request whose client has left gives up its place in the queue',
    tests: ['test/core/server'],
  },
  {
    file: 'core/stop.ts',
    find: '    requests.drain()\n',
    replace: '',
    breaks: 'at a stop answers say Connection: close and waits end',
    tests: ['test/core/stop'],
  },
  // Validation
  {
    file: 'validation/fields-kinds.ts',
    find: "return Object.hasOwn(value, key) ? (value as Readonly<Record<string, unknown>>)[key] : undefined",
    replace: "return (value as Readonly<Record<string, unknown>>)[key]",
    breaks: 'what every object inherits is no member of a JSON body',
  },
  {
    file: 'validation/fields-kinds.ts',
    find: 'if (run.form?.isFile(value) !== true) return',
    replace: "if (!((one: unknown): one is import('../http/form.ts').FormFile => one !== null)(value)) return",
    breaks: 'JSON names no file of the server',
  },
  {
    file: 'validation/fields-kinds.ts',
    find: " && type !== 'image/svg+xml'",
    replace: '',
    breaks: 'image/* takes no SVG picture',
  },
  {
    file: 'validation/form.ts',
    find: ' || !ctx.session.isFromClient',
    replace: '',
    breaks: 'a refused form begins no session',
  },
  {
    file: 'validation/form.ts',
    find: '() => true)',
    replace: '() => false)',
    breaks: 'a refused form leads to no system route',
  },
  {
    file: 'validation/form.ts',
    find: 'if (name === csrfField || mayBeSecret(name) || known?.isSecret === true) continue',
    replace: 'if (name === csrfField || known?.isSecret === true) continue',
    breaks: 'what is typed into a field with the name of a secret is not kept',
  },
  {
    file: 'http/origin.ts',
    find: 'return origin !== undefined && isThisHost(origin, request)',
    replace: 'return origin !== undefined',
    breaks: 'a refused form leads to no other site',
    tests: ['test/protection', 'test/validation'],
  },
  // What clients and applications give
  {
    file: 'session/session.ts',
    find: 'this.#openOther(ids, at + 1)',
    replace: 'this.#openOther([], 0)',
    breaks: 'of several session cookies the first whose session is there counts',
  },
  {
    file: 'access/cookie.ts',
    find: 'readCookies(header, adminCookieName).some(',
    replace: 'readCookies(header, adminCookieName).slice(0, 1).some(',
    breaks: 'a stale svc_admin before the valid one keeps nobody out',
  },
  {
    file: 'access/password.ts',
    find: '? [password] : [normal, password]',
    replace: '? [password] : [normal]',
    breaks: 'a hash made of decomposed text before stays valid',
    tests: ['test/access', 'test/panel', 'test/protection', 'test/validation'],
  },
  {
    file: 'base/json-text.ts',
    find: 'value instanceof Map || value instanceof Set || ',
    replace: 'value instanceof Set || ',
    breaks: 'a Map with members of its own is not kept as JSON',
  },
  {
    file: 'http/origin.ts',
    find: "(origin.scheme === 'http' && !request.secure)",
    replace: "(origin.scheme !== 'https' && !request.secure)",
    breaks: "an app's origin is never this host",
  },
  {
    file: 'session/is-auth.ts',
    find: "const sub = isObject(jwt) ? jwt['sub'] : undefined",
    replace: 'const sub = isObject(jwt) ? undefined : jwt',
    breaks: 'a limit by user counts by the claim sub',
    tests: ['test/protection/limit'],
  },
  {
    file: 'http/multipart.ts',
    find: 'Math.max(0, held - headerEnd.length + 1)',
    replace: 'held',
    breaks: 'the end of a header is found where chunks cut it',
  },
  // Jobs and durable data
  {
    file: 'jobs/cron.ts',
    find: 'return either ? day || weekday : day && weekday',
    replace: 'return day && weekday',
    breaks: 'where day of month and day of week are both restricted, either suffices',
  },
  {
    file: 'jobs/cron.ts',
    find: 'if (timeMs > afterMs) return timeMs',
    replace: 'if (timeMs >= afterMs - 3_600_000) return timeMs',
    breaks: 'a time that daylight saving repeats runs once',
  },
  {
    file: 'jobs/runner.ts',
    find: 'const isLast = attempt > retries ||',
    replace: 'const isLast = attempt >= retries ||',
    breaks: '`retries` counts the tries after the first',
  },
  {
    file: 'jobs/runner.ts',
    find: '      this.#ended.unshift(...outcomes)\n',
    replace: '',
    breaks: 'the end of a try is reported again if the store failed',
  },
  {
    file: 'jobs/runner.ts',
    find: 'const runs = isOver && (catchUp || from >= this.#startedMs)',
    replace: 'const runs = isOver',
    breaks: 'a missed run of a schedule without catch_up is skipped',
  },
  {
    file: 'data/sqlite-jobs.ts',
    find: 'WHERE id = ? AND state = 1 AND owner = ?',
    replace: 'WHERE id = ? AND state = 1 AND ? IS NOT NULL',
    breaks: 'only the owner of a job ends it',
  },
  {
    file: 'data/sqlite-jobs.ts',
    find: 'WHERE state = 0 AND name = ? AND key = ? LIMIT 1',
    replace: 'WHERE name = ? AND key = ? LIMIT 1',
    breaks: 'a key refers to the job of that name that waits, not to one that runs',
  },
  // Live pages
  {
    file: 'live/presence.ts',
    find: 'if (present.connections > 0 || this.#isClosed) return',
    replace: 'if (this.#isClosed) return',
    breaks: 'a member leaves with the last of its connections',
  },
  {
    file: 'live/presence.ts',
    find: "if (type === 'list') this.#dropMembersOf(from)",
    replace: '',
    breaks: 'a full list of a process replaces what was known of it',
  },
  // Proof
  {
    file: 'log/audit-chain.ts',
    find: 'return `${before.mac}\\n${text}`',
    replace: 'return text',
    breaks: 'a removed audit record is noticed',
    tests: ['commands/', 'log/'],
  },
  {
    file: 'proof/compare.ts',
    find: 'if (expected === undefined) return [`more: ${quoted(path)}`]',
    replace: 'if (expected === undefined) return []',
    breaks: '`verify` reports a file that the manifest does not list',
  },
  {
    file: 'proof/compare.ts',
    find: 'tierOf(room) === 3 && isGone(room)',
    replace: 'isGone(room)',
    breaks: 'a missing room of tier 1 or 2 is a fault',
  },
  // Protection
  {
    file: 'protection/cors.ts',
    find: "if (match?.route.record.middleware.split(',').includes(middlewareName) !== true) return undefined",
    replace: 'if (match === undefined) return undefined',
    breaks: 'only a route with SVC_MwCors answers a preflight',
  },
  {
    file: 'protection/cors.ts',
    find: 'varyByOrigin(ctx) // Afterwards, since the action may set Vary too.',
    replace: "if (origin !== undefined) ctx.outgoing.set('Vary', 'Origin')",
    breaks: 'a cache keeps one response for each origin, whatever the action sets',
  },
  // Configuration, tests of applications, development
  {
    file: 'config/together.ts',
    find: "  'paths.data',\n",
    replace: '',
    breaks: 'the folder of the data is never served as static files',
  },
  {
    file: 'testing/cookie-jar.ts',
    find: 'return isBelow && expiresAtMs > now &&',
    replace: 'return isBelow &&',
    breaks: 'the client of a test does not send an expired cookie',
  },
  {
    file: 'dev/pages.ts',
    find: 'const isServed = this.#isServed(ctx.host) && hides?.(ctx) !== true',
    replace: 'const isServed = hides?.(ctx) !== true',
    breaks: 'the stream of `dev` is served for hosts of this machine only',
  },
  {
    file: 'nodes/node-list.ts',
    find: 'return listens || agoMs < missedMs',
    replace: 'return listens',
    breaks: 'a change waits for a node that has just lost its connection',
  },
  {
    file: 'diagnose/profile.ts',
    find: '        endsAt = undefined\n',
    replace: '',
    breaks: 'a second profile can be taken after the first',
  },
]
