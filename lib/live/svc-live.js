/**
 * The browser's half of `ctx.live(channel)`: gives a page each event of a channel once, in order, and tells it when
 * some are missing. Tabs of a browser with the same address and `as` share one connection: the tab that holds a lock
 * (Web Locks) leads; it connects, and passes on what it hears (BroadcastChannel). Part of svc, see docs/streaming.md.
 */
const beatMs = 5_000 // how often tabs show each other that they are there
const leaderLostMs = 15_000 // a leader that was silent for so long is frozen
const unseenMs = 300_000 // when no tab was visible for so long, the connection rests
const firstByteMs = 10_000 // a stream begins at once, unless a proxy holds it back
const silentMs = 45_000 // a stream says something every 15 s, unless its connection is dead
const pollMs = 60_000 // a poll is answered within 30 s, unless its connection is dead
const firstWaitMs = 1_000
const longestWaitMs = 30_000

/**
 * Follows a channel. `onEvent(data, {id})`, `onGap({last_id})`, `onPresence(members)` and `onState(state)` are called
 * one after the other, each when the promise of the one before is settled. After a gap read anew what the page shows.
 * @param url of a route whose action returns `ctx.live(channel)`
 * @returns `close()`; `state`; `lastId`, the id up to which the page was given everything
 */
export function live(url, options = {}) {
  const { onEvent, onGap, onPresence, onState, transport = 'auto', shared = true, as = '', remember = false } = options
  const address = new URL(url, location.href)
  const name = `svc-live ${address.href} ${as}`
  const storage = remember ? sessionStorage : undefined
  const tabs = shared && navigator.locks && 'BroadcastChannel' in window ? new BroadcastChannel(name) : undefined
  const closing = new AbortController()
  const here = new Map()
  const since = options.since ?? storage?.getItem(name) ?? undefined
  /** The id up to which this tab has heard everything; undefined: it begins with the next event. */
  let cursor = since === undefined ? undefined : Number(since)
  let lastId = cursor
  let state = 'connecting'
  let calls = Promise.resolve()
  let isLeading = tabs === undefined
  let competing // aborted: this tab no longer leads, nor waits for the lock
  let attempt // aborted: the present connection ends
  let wake = () => {} // ends the present pause
  let held // what the leader says while this tab catches up
  let isLeft = false // the page is kept by the browser for the way back, or frozen
  let seenAtMs = performance.now() // when one of the tabs was visible
  let leaderAtMs = performance.now() // when the leader was heard

  function call(run) {
    calls = calls.then(run).catch(reportError)
  }

  function setState(next) {
    if (state === next || state === 'closed') return
    state = next
    call(() => onState?.(next))
  }

  /** Takes an event, a gap, a new cursor or a change of presence; passes over what this tab has heard already. */
  function take({ id, event, gap, presence }) {
    if (presence) {
      if (presence.type === 'list') here.clear()
      for (const member of presence.members) here.set(member.id, member)
      if (presence.type === 'leave') for (const { id: gone } of presence.members) here.delete(gone)
      return call(() => onPresence?.([...here.values()]))
    }
    if (!gap && id <= cursor) return
    cursor = id
    call(async () => {
      if (state === 'closed') return
      if (gap) await onGap?.({ last_id: id })
      else if (event) await onEvent?.(event.data, { id })
      lastId = id
      storage?.setItem(name, id)
    })
  }

  /** Takes a message from the server, and passes it on. */
  function hear(message) {
    take(message)
    tabs?.postMessage({ message })
  }

  /** Tells the other tabs the state; and the cursor when it is `open`, since they may be further before that. */
  function show(next, more) {
    setState(next)
    tabs?.postMessage({ state, cursor: state === 'open' ? cursor : undefined, ...more })
  }

  /** Waits until `wake` is called, or for so long. */
  function pause(next, ms = 2 ** 31 - 1) {
    show(next)
    return new Promise((resolve) => setTimeout((wake = resolve), ms))
  }

  /** Why there is to be no connection now; undefined: there is. */
  function resting() {
    if (isLeft) return 'hidden'
    if (!document.hidden) seenAtMs = performance.now()
    if (performance.now() - seenAtMs > unseenMs) return 'hidden'
    return navigator.onLine ? undefined : 'offline'
  }

  /** Stays connected until the signal is aborted. Waits longer after each failure, each browser for another time. */
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

  /** Connects once. Returns, when the connection has ended, what that means for the next one. */
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
      const answer = await ask(streams ? 'text/event-stream' : 'application/json', own.signal)
      const { ok, status, headers } = answer
      const type = headers.get('content-type') ?? ''
      if (ok && type.startsWith('text/event-stream')) {
        end.isAnswered = await readStream(answer.body, hear, () => {
          open()
          expectWithin(silentMs)
        })
      } else if (ok && type.startsWith('application/json')) {
        const poll = await answer.json()
        end.isAnswered = end.isOpen || poll.events.length > 0
        readPoll(poll, hear)
        open()
      } else if (status < 500 && ![408, 425, 429].includes(status)) end.isRefused = true // 0 is a redirect.
      else end.afterMs = Number(headers.get('retry-after')) * 1000 || 0
    } catch {
      // The network failed, or the connection was ended from here.
    }
    clearTimeout(timer)
    clearTimeout(waits)
    end.isHeldBack = own.signal.reason === 'late' && !end.isOpen
    return end
  }

  function ask(accept, signal) {
    const asked = new URL(address)
    if (cursor !== undefined) asked.searchParams.set('since', cursor)
    return fetch(asked, { headers: { Accept: accept }, redirect: 'manual', cache: 'no-store', signal })
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

  /** Reads what this tab has not heard, when the leader is further, or not as far. Tried again at the next beat. */
  async function catchUp(reached) {
    if (cursor === undefined) cursor = lastId = reached
    if (held || cursor === reached || reached === undefined) return
    held = []
    const answering = ask('application/json', AbortSignal.timeout(beatMs))
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
  /** A page that was left or is frozen would keep its connection, and a browser has six for a host. */
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

/** Reads server-sent events. `onHeard` is called after each piece. Returns whether to reconnect at once. */
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
