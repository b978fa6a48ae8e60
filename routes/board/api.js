import { addNotice, allNotices, asJson, textProblem } from './notices.js'
import { nameProblem } from './users.js'

/** GET /api/notices : all notices as JSON. */
export default () => allNotices().map(asJson)

/**
 * POST /api/notices : adds a notice, `{"text": ...}`, for a program with a token, whose claim `sub` is the author. It
 * uses no cookie, so other sites cannot misuse it, and no CSRF token is needed.
 */
export const add = async ({ state, readJson, json, setHeader, url, log }) => {
  const author = state.jwt.sub
  if (nameProblem(author)) return json({ error: 'no_author', detail: 'The claim sub must be a name' }, 403)
  const text = (await readJson())?.text
  const problem = typeof text === 'string' ? textProblem(text.trim()) : 'The text must be a string.'
  if (problem) return json({ error: 'invalid_notice', errors: { text: problem } }, 422)

  const notice = addNotice({ author, text: text.trim() }) // Without an owner: no user of the board may change it.
  log(`notice ${notice.id} by ${author}, through the API`)
  setHeader('Location', url('board.notice', { id: notice.id }))
  return json(asJson(notice), 201)
}
