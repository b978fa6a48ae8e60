// svc adds this script to the pages of views in `dev`. It reloads the page after a file has changed, or only its style
// sheets if nothing else has, and shows why a reload of the server was refused. While the page is hidden it holds no
// connection; it catches up when shown.
// Each message has the age of the last change, or of the start of the server. Its delay is unknown: it was written at
// some time between the request for the stream and now.

const retryMs = 500
const css = `
:host { all: initial }
section { position: fixed; inset: auto 0 0 0; z-index: 2147483647; max-height: 60vh; overflow: auto;
  box-sizing: border-box; padding: 1rem 1.25rem; border-top: 4px solid #b3261e; background: #fff; color: #1d1b20;
  box-shadow: 0 -4px 24px #0004; font: 15px/1.5 system-ui, sans-serif }
h1 { margin: 0 6rem .75rem 0; font-size: 1.1em; color: #b3261e }
p { margin: 0 }
ul { margin: .75rem 0 0; padding: 0; list-style: none }
li { padding: .5rem 0; border-top: 1px solid #8884; font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap;
  overflow-wrap: anywhere }
button { position: absolute; top: 1rem; right: 1.25rem; padding: .25rem .75rem; border: 1px solid #8888;
  border-radius: .4rem; background: none; color: inherit; font: inherit; cursor: pointer }
@media (prefers-color-scheme: dark) {
  section { border-color: #f2b8b5; background: #1d1b20; color: #e6e0e9 }
  h1 { color: #f2b8b5 }
}`

let source
let overlay
let styledAtMs = 0
const loading = new Set()

function follow() {
  source?.close()
  if (document.hidden) return
  const requestedAtMs = performance.now()
  source = new EventSource(new URL('svc-dev-events', import.meta.url))
  source.onmessage = ({ data }) => {
    const { changedMsAgo, styledMsAgo, problems } = JSON.parse(data)
    if (requestedAtMs >= changedMsAgo) {
      source.close()
      location.reload()
      return
    }
    if (performance.now() >= changedMsAgo) followLater() // A faster response tells which came first.
    else if (problems.length > 0) show(problems)
    if (performance.now() - styledMsAgo >= styledAtMs) restyle()
  }
  source.onerror = followLater
}

function followLater() {
  source.close()
  setTimeout(follow, retryMs)
}

// Replaces each style sheet of this site by the same one under a new address, once that is loaded. A page that gets its
// styles in another way, or does not get the new ones, is reloaded.
function restyle() {
  styledAtMs = performance.now()
  for (const link of loading) link.remove()
  loading.clear()
  const isOwn = ({ sheet, href }) => sheet !== null && new URL(href).origin === location.origin
  const links = [...document.querySelectorAll('link[rel~="stylesheet"][href]')].filter(isOwn)
  if (links.length === 0) location.reload()
  for (const link of links) {
    const fresh = link.cloneNode()
    const url = new URL(link.href)
    url.searchParams.set('svc-dev', styledAtMs)
    fresh.href = url.href
    fresh.onload = () => {
      link.remove()
      loading.delete(fresh)
    }
    fresh.onerror = () => location.reload()
    loading.add(fresh)
    link.after(fresh)
  }
}

function show(problems) {
  hide()
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(css)
  overlay = document.createElement('svc-dev')
  const root = overlay.attachShadow({ mode: 'open' })
  root.adoptedStyleSheets = [sheet]
  const section = element('section', '')
  section.setAttribute('role', 'alert')
  const list = element('ul', '')
  list.append(...problems.map((problem) => element('li', problem)))
  const button = element('button', 'Hide')
  button.onclick = hide
  const what = 'The last change is not in use: the server keeps the old routes until the mistake is fixed.'
  section.append(element('h1', 'The reload was refused'), element('p', what), list, button)
  root.append(section)
  document.documentElement.append(overlay)
}

function hide() {
  overlay?.remove()
}

function element(name, text) {
  const made = document.createElement(name)
  made.textContent = text
  return made
}

document.addEventListener('visibilitychange', follow)
follow()
