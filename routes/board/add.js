import { addNotice, allNotices } from './notices.js'
import { readPicture } from './picture.js'

/** POST /notices : checks the form, then adds the notice, or shows the form again with what was typed. */
export default async ({ readForm, view, redirect, log }) => {
  const form = await readForm()
  // A browser counts a line end as one character against maxlength, and then sends two.
  const text = form.get('text')?.trim().replaceAll('\r\n', '\n') ?? ''
  const input = { author: form.get('author')?.trim() ?? '', text }
  const problems = check(input)
  const file = form.files.find(({ name }) => name === 'picture')
  const picture = file && (await readPicture(file))
  if (file && !picture) problems.push('The picture must be a PNG, JPEG, GIF or WebP file.')
  if (problems.length > 0) return view('routes/board/home.html', { notices: allNotices(), input, problems }, 422)

  const notice = addNotice({ ...input, picture })
  log(`notice ${notice.id} by ${notice.author}`)
  return redirect('/', 303)
}

function check({ author, text }) {
  const problems = []
  if (author === '') problems.push('Who are you? The name is missing.')
  if (author.length > 40) problems.push('The name may have 40 characters.')
  if (text === '') problems.push('The notice is empty.')
  if (text.length > 1000) problems.push(`The notice may have 1000 characters: it has ${text.length}.`)
  return problems
}
