import { noticeForm, typed } from './form.js'
import { addNotice, textProblem } from './notices.js'
import { readPicture } from './picture.js'

/** POST /notices : checks the form, then adds the notice, or shows the form again with the input. */
export default async ({ state, readForm, flash, redirect, log }) => {
  const form = await readForm()
  const text = typed(form, 'text')
  const file = form.files.find(({ name }) => name === 'picture')
  const picture = file && (await readPicture(file))
  const errors = check(text, file, picture)
  if (Object.keys(errors).length > 0) {
    flash(noticeForm('new')).set({ errors, input: { text } })
    return redirect('/', 303)
  }

  const { id, name } = state.user
  const notice = addNotice({ author: name, owner: id, text, picture })
  log(`notice ${notice.id} by ${name}`)
  flash('board').set({ type: 'success', message: 'Your notice was posted.' })
  return redirect('/', 303)
}

function check(text, file, picture) {
  const errors = {}
  const problem = textProblem(text)
  if (problem) errors.text = problem
  if (file && !picture) errors.picture = 'The picture must be a PNG, JPEG, GIF or WebP file.'
  else if (file && problem) errors.picture = 'Please choose the picture again.' // A browser keeps no file.
  return errors
}
