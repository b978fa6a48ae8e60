// Shows each new digest on the tour as soon as its job has written it.

import { live } from '/svc-live.js'

const mail = document.querySelector('#mail')
const [status, text] = mail.children
const { lastId, writtenAt, file } = mail.dataset

if (writtenAt) show({ written_at: writtenAt, file, text: text.textContent })
live('/tour/live', { since: lastId, onEvent: show, onGap: () => location.reload() })

function show(digest) {
  const time = new Date(digest.written_at).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'medium' })
  status.textContent = `Written ${time} to ${digest.file}`
  text.textContent = digest.text
  text.hidden = false
}
