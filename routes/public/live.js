// Takes what changes on the board into the page without a reload, and tells who else is looking at it. Without this
// script the page works as well.

const list = document.querySelector('#notices')
const blank = document.querySelector('#card').content.firstElementChild
const others = document.querySelector('#others')
const { user, name } = list.dataset
/** The id of the last event that the list has. */
let cursor = list.dataset.lastId

// A form that was sent leads back to `/`: what was chosen last counts on.
const way = (sessionStorage.live = new URLSearchParams(location.search).get('live') ?? sessionStorage.live ?? 'poll')
const chosen = way === 'sse' ? 'sse' : 'poll'
document.querySelector(`.live a[href$="=${chosen}"]`).setAttribute('aria-current', 'true')
document.querySelector('.live').hidden = false
for (const time of list.querySelectorAll('time')) time.textContent = asText(time.dateTime)
again(chosen === 'sse' ? stream : poll)
again(meet)

/** Runs a connection for ever: when it ends, anew after 1 to 2 seconds, so that not all come back in one moment. */
async function again(connection) {
  for (;;) {
    await connection().catch((reason) => console.warn('The board is not live for a moment:', reason))
    await new Promise((resolve) => setTimeout(resolve, 1000 + Math.random() * 1000))
  }
}

/** Long polls: the next one as soon as the last is answered, until one fails. */
async function poll() {
  for (;;) await take(await getJson(`/board/poll?since=${cursor}`))
}

/** Server-sent events, until the connection fails. A browser comes back by itself, but not after a 503. */
async function stream() {
  const source = new EventSource(`/board/events?since=${cursor}`)
  let taken = Promise.resolve() // One after the other, since a gap takes its time.
  try {
    await new Promise((resolve, reject) => {
      const hear = (read) => {
        taken = taken.then(() => take(read))
        taken.catch(reject)
      }
      source.onmessage = ({ data, lastEventId }) => hear({ events: [{ data: JSON.parse(data) }], last_id: lastEventId })
      source.addEventListener('gap', ({ data }) => hear({ gap: true, last_id: JSON.parse(data).last_id }))
      source.onerror = reject
    })
  } finally {
    source.close()
    await taken
  }
}

/** The WebSocket that tells who is there, until it closes. */
async function meet() {
  const socket = new WebSocket(new URL('/board/presence', location.href.replace(/^http/, 'ws')))
  socket.onmessage = ({ data }) => {
    others.textContent = whoElse(JSON.parse(data))
  }
  await new Promise((resolve) => (socket.onclose = resolve))
  others.textContent = 'No connection to the board.'
}

/** Brings the list up to date. After a gap there are changes that nobody can tell any more: it is read anew. */
async function take({ events, gap, last_id }) {
  if (gap) list.replaceChildren(...(await getJson('/api/notices')).map(cardOf))
  else for (const { data } of events) change(data)
  document.querySelector('.empty').hidden = list.childElementCount > 0
  cursor = last_id
}

/** A notice is known by its id, so that one which is told twice is there once. */
function change({ kind, notice }) {
  const old = document.getElementById(`notice-${notice.id}`)
  if (kind === 'removed') old?.remove()
  else if (old) old.replaceWith(cardOf(notice))
  else list.prepend(cardOf(notice))
}

function cardOf({ id, author, owner, text, picture, written_at }) {
  const card = blank.cloneNode(true)
  const parts = ['img', '.text', 'span', 'a', 'time', '.edit']
  const [image, words, by, link, time, edit] = parts.map((part) => card.querySelector(part))
  card.id = `notice-${id}`
  if (picture) Object.assign(image, { src: picture, alt: `Picture by ${author}` })
  else image.remove()
  words.textContent = text
  by.textContent = `${author},`
  link.href = `/notices/${id}`
  time.dateTime = written_at
  time.textContent = asText(written_at)
  if (owner !== user) edit?.remove()
  else edit.href = `/notices/${id}/edit`
  return card
}

function asText(time) {
  return new Date(time).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' })
}

function whoElse({ people, names, guests }) {
  const seen = names.filter((one) => one !== name)
  const more = people - seen.length - (name ? 1 : 0)
  const strangers = guests - (name ? 0 : 1)
  if (more > 0) seen.push(`${more} more`)
  if (strangers > 0) seen.push(strangers === 1 ? 'a guest' : `${strangers} guests`)
  return seen.length > 0 ? `Also here: ${new Intl.ListFormat('en').format(seen)}` : 'Nobody else is here.'
}

async function getJson(path) {
  // A poll is answered within 25 seconds, unless the connection has died without a word.
  const answer = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(60_000) })
  if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}`)
  return answer.json()
}
