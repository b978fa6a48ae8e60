import { noticeForm, shownAgain, typed } from './form.js'
import { changeNotice, findNotice, mayChange, removeNotice, textProblem } from './notices.js'

/** GET /notices/:id/edit : the forms to change or delete one's own notice. */
export default ({ params, state, flash, view, fail }) => {
  const notice = findNotice(params.id) ?? fail(404, 'no_such_notice', `There is no notice ${params.id}.`)
  if (!mayChange(notice, state.user)) fail(403, 'not_yours', 'This notice is not yours.')
  return view('routes/board/edit.html', { notice, ...shownAgain(flash(noticeForm(notice.id))) })
}

/** POST /notices/edit : changes the text. */
export const save = async (ctx) => {
  const { readForm, flash, redirect, url, log } = ctx
  const notice = await sentNotice(ctx)
  if (notice === undefined) return redirect('/', 303)
  const text = typed(await readForm(), 'text')
  const problem = textProblem(text)
  if (problem) {
    flash(noticeForm(notice.id)).set({ errors: { text: problem }, input: { text } })
    return redirect(url('board.edit', { id: notice.id }), 303)
  }
  changeNotice(notice, text)
  log(`notice ${notice.id} was changed`)
  flash('board').set({ type: 'success', message: 'Your notice was changed.' })
  return redirect('/', 303)
}

/** POST /notices/delete : deletes the notice. */
export const remove = async (ctx) => {
  const { flash, redirect, log } = ctx
  const notice = await sentNotice(ctx)
  if (notice === undefined) return redirect('/', 303)
  removeNotice(notice)
  log(`notice ${notice.id} was deleted`)
  flash('board').set({ type: 'success', message: 'Your notice was deleted.' })
  return redirect('/', 303)
}

/**
 * Returns the notice of a form; undefined, with a message, if there is none. The signed id proves that this application
 * made the form, but not for whom: it still has to check whether this user may change the notice.
 */
async function sentNotice({ UGetResource, state, flash, fail }) {
  const id = await UGetResource()
  const notice = id === '' ? undefined : findNotice(id)
  if (notice === undefined) {
    const message = id === '' ? 'This form is damaged. Please open it again.' : 'This notice no longer exists.'
    flash('board').set({ type: 'warning', message })
  } else if (!mayChange(notice, state.user)) {
    fail(403, 'not_yours', 'This notice is not yours.')
  }
  return notice
}
