import { randomUUID } from 'node:crypto'

/** GET /board/live : the changes of the board, as a stream or a poll; streams also get the current viewers. */
export default (ctx) => {
  const notices = ctx.channel('notices')
  const { user } = ctx.state
  ctx.presence(notices, user ? { id: user.id, name: user.name } : { id: randomUUID() })
  return ctx.live(notices)
}
