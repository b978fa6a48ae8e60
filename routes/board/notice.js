import { findNotice, mayChange } from './notices.js'

/** GET /notices/:id : one notice on its own page. */
export default ({ params, view, fail }) => {
  const notice = findNotice(params.id) ?? fail(404, 'no_such_notice', `There is no notice ${params.id}.`)
  return view('routes/board/notice.html', { notice, mayChange })
}

/** GET /pictures/:id : the picture of a notice. */
export const picture = ({ params, setHeader, fail }) => {
  const { picture } = findNotice(params.id) ?? {}
  if (!picture) fail(404, 'no_such_picture', `There is no picture ${params.id}.`)
  setHeader('Content-Type', picture.type)
  setHeader('Cache-Control', 'max-age=3600')
  setHeader('X-Content-Type-Options', 'nosniff')
  return picture.bytes
}
