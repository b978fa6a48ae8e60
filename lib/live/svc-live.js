/**
 * The browser side of `ctx.live(channel)` and of WebSockets: delivers each event of a channel to a page once, in order,
 * and reports gaps. Tabs of a browser with the same address and `as` share one connection of `live`: the tab that holds
 * a lock (Web Locks) leads. It connects, and forwards what it receives (BroadcastChannel). A WebSocket is never shared.
 * Part of svc, see docs/streaming.md.
 */
const beatMs = 5_000 // the heartbeat between tabs
const leaderLostMs = 15_000 // a leader that was silent for this long is frozen
const unseenMs = 300_000 // when no tab was visible for this long, the connection pauses
const firstByteMs = 10_000 // a stream begins at once, unless a proxy buffers it
const silentMs = 45_000 // a stream sends something every 15 s, unless its connection is dead
const pollMs = 60_000 // a poll is answered within 30 s, unless its connection is dead
const firstWaitMs = 1_000
const longestWaitMs = 30_000
const settledMs = 10_000 // a WebSocket that ends sooner counts as a failure
const foreverMs = 2 ** 31 - 1 // the longest that a timer can wait

/**
 * Follows a channel. `onEvent(data, {id})`, `onGap({last_id})`, `onPresence(members)` and `onState(state)` are called
 * in sequence, each when the promise of the previous call is settled. After a gap, reload what the page shows.
 * @param url of a route whose action returns `ctx.live(channel)`
 * @returns `close()`; `state`; `lastId`, the id up to which the page has received everything
 */
export function live(url, options = {}) {
  return follow(new URL(url, location.href), options, fetchEvents)
}

/**
 * Opens a WebSocket to a path of this site, and opens it again whenever it ends. Calls as `live`, and `onMessage(data)`
 * with each message that `ws.follow` and `ctx.presence` did not send: text as a string, bytes as an ArrayBuffer.
 * `?since=` of the address is the cursor; it is empty when the page may have missed events and has no cursor.
 * @param url of a route whose module exports `websocket`
 * @returns as `live`, and `send(data)`: sends text or bytes if it is open, else returns false
 */
export function socket(url, options = {}) {
  const address = new URL(url, location.href)
  address.protocol = location.protocol
  address.hash = ''
  let ws
  let wasOpen = false

  async function dial({ target, signal, end, open, expectWithin, hear }) {
    if (wasOpen && !target.searchParams.has('since')) target.searchParams.set('since', '')
    ws = new WebSocket(String(target).replace(/^http/, 'ws'))
    ws.binaryType = 'arraybuffer'
    let openedAtMs
    const code = await new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve())
      ws.onclose = (event) => resolve(event.code)
      ws.onmessage = ({ data }) => hear(messageIn(data) ?? { other: data })
      ws.onopen = () => {
        wasOpen = true
        openedAtMs = performance.now()
        expectWithin(foreverMs)
        open()
      }
    })
    ws.onopen = ws.onmessage = null
    ws.close(1000)
    if (performance.now() - openedAtMs < settledMs) end.isOpen = false
    if (code === 1008 || (code >= 4000 && code < 4500)) end.isRefused = true
    else if (code && !openedAtMs) {
      // A browser does not say why a handshake failed. The middleware of the route replies to a plain request as well.
      const answer = await ask(target, 'application/json', signal, 'HEAD')
      if (!answer.ok && answer.status !== 426) weigh(answer, end)
    }
  }

  const follower = follow(address, { ...options, transport: 'sse', shared: false }, dial)
  return Object.assign(follower, {
    send(data) {
      if (typeof data !== 'string' && !(data instanceof ArrayBuffer) && !ArrayBuffer.isView(data)) {
        throw new TypeError(`Cannot send: a message is a string, an ArrayBuffer or a view of one: it is ${typeof data}`)
      }
      const isOpen = follower.state === 'open' && ws.readyState === WebSocket.OPEN
      if (isOpen) ws.send(data)
      return isOpen
    },
  })
}

/** What `live` and `socket` share. `exchange` connects once, until the connection ends: see `connect`. */
function follow(address, options, exchange) {
  const { onEvent, onGap, onPresence, onMessage, onState } = options
  const { transport = 'auto', shared = true, as = '', remember = false } = options
  const name = `svc-live ${address.href} ${as}`
  const storage = remember ? sessionStorage : undefined
  const tabs = shared && navigator.locks && 'BroadcastChannel' in window ? new BroadcastChannel(name) : undefined
  const closing = new AbortController()
  const here = new Map()
  const since = options.since ?? storage?.getItem(name) ?? undefined
  /** The id up to which this tab has received everything; undefined: it starts with the next event. */
  let cursor = since === undefined ? undefined : Number(since)
  let lastId = cursor
  let state = 'connecting'
  let calls = Promise.resolve()
  let isLeading = tabs === undefined
  let competing // aborted: this tab no longer leads, nor waits for the lock
  let attempt // aborted: the current connection ends
  let wake = () => {} // ends the current pause
  let held // messages of the leader while this tab catches up
  let isLeft = false // the page is in the back-forward cache, or frozen
  let seenAtMs = performance.now() // when one of the tabs was visible
  let leaderAtMs = performance.now() // when the leader last sent a message

  function call(run) {
    calls = calls.then(run).catch(reportError)
  }

  /** Calls a function of the page, unless it has called `close` by then. */
  function deliver(run) {
    call(() => (state === 'closed' ? undefined : run()))
  }

  function setState(next) {
    if (state === next || state === 'closed') return
    state = next
    call(() => onState?.(next))
  }

  /** Processes an event, a gap, a new cursor, a presence change or other data; skips what this tab has received. */
  function take({ id, event, gap, presence, other }) {
    if (other !== undefined) return deliver(() => onMessage?.(other))
    if (presence) {
      if (presence.type === 'list') here.clear()
      for (const member of presence.members) here.set(member.id, member)
      if (presence.type === 'leave') for (const { id: gone } of presence.members) here.delete(gone)
      return deliver(() => onPresence?.([...here.values()]))
    }
    if (!gap && id <= cursor) return
    cursor = id
    deliver(async () => {
      if (gap) await onGap?.({ last_id: id })
      else if (event) await onEvent?.(event.data, { id })
      lastId = id
      storage?.setItem(name, id)
    })
  }

  /** Processes a message from the server, and forwards it. */
  function hear(message) {
    take(message)
    tabs?.postMessage({ message })
  }

  /** Sends the state to the other tabs, and the cursor when it is `open`: before that, they may be ahead. */
  function show(next, more) {
    setState(next)
    tabs?.postMessage({ state, cursor: state === 'open' ? cursor : undefined, ...more })
  }

  /** Waits until `wake` is called, at most `ms`. */
  function pause(next, ms = foreverMs) {
    show(next)
    return new Promise((resolve) => setTimeout((wake = resolve), ms))
  }

  /** Returns why there should be no connection now; undefined: connect. */
  function resting() {
    if (isLeft) return 'hidden'
    if (!document.hidden) seenAtMs = performance.now()
    if (performance.now() - seenAtMs > unseenMs) return 'hidden'
    return navigator.onLine ? undefined : 'offline'
  }

  /** Stays connected until the signal is aborted. Waits longer after each failure, for a random time. */
  async function lead(signal) {
    let failures = 0
    let streams = transport !== 'poll'
    isLeading = true
    signal.addEventListener('abort', () => (attempt?.abort(), wake()))
    while (!signal.aborted) {
      const end = resting() ? await pause(resting()) : await connect(streams)
      if (end === undefined) continue
      while (end.isRefused && !signal.aborted) await pause('refused')
      if (end.isHeldBack && transport === 'auto') streams = false
      failures = end.isOpen ? 0 : failures + 1
      if (end.isAnswered || signal.aborted || resting()) continue
      await pause('waiting', (end.afterMs ?? 0) + Math.random() * Math.min(longestWaitMs, firstWaitMs * 2 ** failures))
    }
    isLeading = false
  }

  /** The address with the cursor. */
  function withCursor() {
    const asked = new URL(address)
    if (cursor !== undefined) asked.searchParams.set('since', cursor)
    return asked
  }

  /** Connects once. Returns, when the connection has ended, what the next one depends on. */
  async function connect(streams) {
    const own = (attempt = new AbortController())
    const end = {}
    let timer
    const expectWithin = (ms) => {
      clearTimeout(timer)
      timer = setTimeout(() => own.abort('late'), ms)
    }
    const open = () => {
      if (!end.isOpen) show('open')
      end.isOpen = true
    }
    if (state !== 'open') show('connecting')
    expectWithin(streams ? firstByteMs : pollMs)
    const waits = streams ? undefined : setTimeout(open, firstWaitMs) // A poll that is not answered at once is open.
    try {
      await exchange({ target: withCursor(), streams, signal: own.signal, end, open, expectWithin, hear })
    } catch {
      // The network failed, or this tab ended the connection.
    }
    clearTimeout(timer)
    clearTimeout(waits)
    end.isHeldBack = own.signal.reason === 'late' && !end.isOpen
    return end
  }

  /** Waits for the lock, or takes it from a leader that is frozen, and leads while this tab has it. */
  async function compete(steal = false) {
    competing?.abort()
    const { signal } = (competing = new AbortController())
    await navigator.locks.request(name, steal ? { steal } : { signal }, () => lead(signal)).catch(() => {})
    if (!signal.aborted) compete() // Another tab has taken the lock.
  }

  function hearTab({ data: { visible, asks, message, ...leader } }) {
    if (visible) seenAtMs = performance.now()
    if (visible && state === 'hidden') wake()
    if (asks && isLeading) show(state, { presence: { type: 'list', members: [...here.values()] } })
    if (isLeading || (leader.state ?? message) === undefined) return
    leaderAtMs = performance.now()
    if (leader.presence?.members.length > 0) take(leader)
    if (leader.state) {
      setState(leader.state)
      catchUp(leader.cursor)
    } else if (held) held.push(message)
    else take(message)
  }

  /** Reads what this tab has missed, when its cursor differs from the leader's. Retried at the next beat. */
  async function catchUp(reached) {
    if (cursor === undefined) cursor = lastId = reached
    if (held || cursor === reached || reached === undefined) return
    held = []
    const answering = ask(withCursor(), 'application/json', AbortSignal.timeout(beatMs))
    const poll = await answering.then((answer) => answer.ok && answer.json()).catch(() => false)
    if (poll) readPoll(poll, take)
    if (poll) held.forEach(take)
    held = undefined
  }

  const beats = setInterval(() => {
    if (resting()) attempt?.abort()
    if (isLeading) return show(state)
    if (document.hidden) return
    tabs.postMessage({ visible: true })
    if (performance.now() - leaderAtMs > leaderLostMs) compete(true)
  }, beatMs)
  const listen = (target, type, run) => target.addEventListener(type, run, { signal: closing.signal })
  listen(window, 'online', () => wake())
  listen(document, 'visibilitychange', () => {
    if (document.hidden) return
    tabs?.postMessage({ visible: true })
    wake()
  })
  /** A hidden or frozen page would keep its connection, and a browser has six per host. */
  function leave(isAway) {
    if (isLeft === isAway) return
    isLeft = isAway
    if (isAway) [attempt, competing].forEach((each) => each?.abort())
    else if (tabs) compete()
    else wake()
  }
  for (const [target, away, back] of [[window, 'pagehide', 'pageshow'], [document, 'freeze', 'resume']]) {
    listen(target, away, () => leave(true))
    listen(target, back, () => leave(false))
  }
  if (tabs) {
    tabs.onmessage = hearTab
    compete()
    tabs.postMessage({ visible: !document.hidden, asks: true })
  } else lead(closing.signal)
  return {
    close() {
      setState('closed')
      clearInterval(beats)
      closing.abort()
      competing?.abort()
      tabs?.close()
    },
    get state() { return state },
    get lastId() { return lastId },
  }
}

/** Sends a request without following redirects. */
function ask(target, accept, signal, method = 'GET') {
  return fetch(target, { method, headers: { Accept: accept }, redirect: 'manual', cache: 'no-store', signal })
}

/** One connection of `live`: a stream or a poll. Sets in `end` what the next one depends on. */
async function fetchEvents({ target, streams, signal, end, open, expectWithin, hear }) {
  const answer = await ask(target, streams ? 'text/event-stream' : 'application/json', signal)
  const type = answer.headers.get('content-type') ?? ''
  if (answer.ok && type.startsWith('text/event-stream')) {
    end.isAnswered = await readStream(answer.body, hear, () => {
      open()
      expectWithin(silentMs)
    })
  } else if (answer.ok && type.startsWith('application/json')) {
    const poll = await answer.json()
    end.isAnswered = end.isOpen || poll.events.length > 0
    readPoll(poll, hear)
    open()
  } else weigh(answer, end)
}

/** Decides whether and when to connect again after a response without events. */
function weigh({ status, headers }, end) {
  if (status < 500 && ![408, 425, 429].includes(status)) end.isRefused = true // 0 is a redirect.
  else end.afterMs = Number(headers.get('retry-after')) * 1000 || 0
}

/** Reads server-sent events. `onHeard` is called after each chunk. Returns whether to reconnect at once. */
async function readStream(body, hear, onHeard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  let isRenewed
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const frames = (rest + piece.value).split('\n\n')
    rest = frames.pop()
    for (const frame of frames) {
      const { id, event, data, retry } = Object.fromEntries(frame.split('\n').map((line) => line.split(/: ?(.*)/s, 2)))
      isRenewed = id === undefined && retry === '0'
      if (event === 'presence') hear({ presence: JSON.parse(data) })
      else if (event === 'gap') hear({ id: JSON.parse(data).last_id, gap: true })
      else if (id !== undefined) hear({ id: Number(id), event: data && { data: JSON.parse(data) } })
    }
    onHeard()
  }
  return isRenewed
}

function readPoll({ events, last_id: id, gap }, hear) {
  if (!gap) for (const event of events) hear({ id: event.id, event })
  hear({ id, gap })
}

/** Parses a message of `ws.follow` or `ctx.presence`; undefined for anything else. */
function messageIn(text) {
  if (typeof text !== 'string' || !text.startsWith('{"event":')) return undefined
  try {
    const { event, id, data } = JSON.parse(text)
    if (event === 'message' && Number.isSafeInteger(id)) return { id, event: { data } }
    if (event === 'gap' && Number.isSafeInteger(data.last_id)) return { id: data.last_id, gap: true }
    if (event === 'presence' && Array.isArray(data.members)) return { presence: data }
  } catch {
    // The application's own text.
  }
}
