import { noticeForm, shownAgain } from './form.js'
import { allNotices, mayChange } from './notices.js'

/** GET / : the board, with the form for signed-in users. */
export default async ({ state, flash, channel, view }) => {
  // Guests do not see the form, so their visit must not consume its input.
  const form = state.user ? shownAgain(flash(noticeForm('new'))) : {}
  // Read before the notices: a change in between is sent twice, rather than never.
  const lastId = await channel('notices').last_id
  const shown = { lastId, notices: allNotices(), blank: blankFor(state.user), mayChange }
  return view('routes/board/home.html', { ...form, ...shown })
}

/** The notice that `board.js` clones for new ones: it has everything that a card can have. */
function blankFor(user) {
  return { id: 0, author: '', owner: user?.id, text: '', picture: true, writtenAt: new Date() }
}
