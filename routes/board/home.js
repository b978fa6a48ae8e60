import { allNotices } from './notices.js'

/** GET / : the board with its form. */
export default ({ view }) => view('routes/board/home.html', { notices: allNotices(), input: {}, problems: [] })

/** GET /api/notices : the same as JSON. */
export const list = ({ url }) =>
  allNotices().map(({ id, author, text, picture, writtenAt }) => ({
    id,
    author,
    text,
    written_at: writtenAt.toISOString(),
    picture: picture && url('board.picture', { id }),
  }))
