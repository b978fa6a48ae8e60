import { noticeForm, shownAgain } from './form.js'
import { allNotices, mayChange } from './notices.js'

/** GET / : the board, with the form for who is signed in. */
export default async ({ state, flash, channel, view }) => {
  // Nobody else sees the form, so nobody else's visit takes out what is kept for it.
  const form = state.user ? shownAgain(flash(noticeForm('new'))) : {}
  // Asked before the notices are: what changes in between is told once more, rather than never.
  const lastId = await channel('notices').last_id
  const shown = { lastId, notices: allNotices(), blank: blankFor(state.user), mayChange }
  return view('routes/board/home.html', { ...form, ...shown })
}

/** The notice of which `board.js` makes the others: it has everything that a card can have. */
function blankFor(user) {
  return { id: 0, author: '', owner: user?.id, text: '', picture: true, writtenAt: new Date() }
}
