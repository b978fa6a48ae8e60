import { noticeForm, shownAgain } from './form.js'
import { allNotices, mayChange } from './notices.js'

/** GET / : the board, with the form for who is signed in. */
export default ({ state, flash, view }) => {
  // Nobody else sees the form, so nobody else's visit takes out what is kept for it.
  const form = state.user ? shownAgain(flash(noticeForm('new'))) : {}
  return view('routes/board/home.html', { ...form, notices: allNotices(), mayChange })
}
