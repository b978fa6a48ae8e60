// Applies changes of the board to the page without a reload, and shows the other viewers. The page also works without
// this script.

import { live } from '/svc-live.js'

const list = document.querySelector('#notices')
const blank = document.querySelector('#card').content.firstElementChild
const others = document.querySelector('#others')
const { user, name } = list.dataset

// Sending a form leads back to `/`, so the last choice is remembered.
const way = (sessionStorage.live = new URLSearchParams(location.search).get('live') ?? sessionStorage.live ?? 'sse')
const chosen = way === 'poll' ? 'poll' : 'sse'
document.querySelector(`.live a[href$="=${chosen}"]`).setAttribute('aria-current', 'true')
document.querySelector('.live').hidden = false
for (const time of list.querySelectorAll('time')) time.textContent = asText(time.dateTime)
live('/board/live', {
  transport: chosen,
  as: user,
  since: list.dataset.lastId,
  onEvent: ({ kind, notice }) => show(() => change(kind, notice)),
  // After a gap, changes are missing: read the whole list again.
  onGap: async () => {
    const notices = await getJson('/api/notices')
    show(() => list.replaceChildren(...notices.map(cardOf)))
  },
  onPresence: (members) => (others.textContent = whoElse(members)),
  onState: (state) => {
    document.querySelector('.live').dataset.state = state
    if (state === 'waiting' || state === 'offline') others.textContent = 'No connection to the board.'
    else if (chosen === 'poll') others.textContent = ''
  },
})

function show(changeList) {
  changeList()
  document.querySelector('.empty').hidden = list.childElementCount > 0
}

/** Applies a change. A notice is found by its id, so that an event sent twice shows it once. */
function change(kind, notice) {
  const old = document.getElementById(`notice-${notice.id}`)
  if (kind === 'removed') old?.remove()
  else if (old) old.replaceWith(cardOf(notice))
  else list.prepend(cardOf(notice))
}

function cardOf({ id, author, owner, text, picture, written_at }) {
  const card = blank.cloneNode(true)
  const parts = ['img', '.text', 'footer', 'span', 'a', 'time', '.edit']
  const [image, words, foot, by, link, time, edit] = parts.map((part) => card.querySelector(part))
  card.id = `notice-${id}`
  if (picture) Object.assign(image, { src: picture, alt: `Picture by ${author}` })
  else image.remove()
  words.textContent = text
  foot.dataset.initial = [...author][0]
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

function whoElse(members) {
  const names = members.flatMap((member) => member.name ?? [])
  const seen = names.filter((one) => one !== name).slice(0, 20)
  const more = names.length - seen.length - (name ? 1 : 0)
  const guests = members.length - names.length - (name ? 0 : 1)
  if (more > 0) seen.push(`${more} more`)
  if (guests > 0) seen.push(guests === 1 ? 'a guest' : `${guests} guests`)
  return seen.length > 0 ? `Also here: ${new Intl.ListFormat('en').format(seen)}` : 'No one else is here.'
}

async function getJson(path) {
  const response = await fetch(path, { cache: 'no-store' })
  if (!response.ok) throw new Error(`${path} returned status ${response.status}`)
  return response.json()
}
