import { randomUUID } from 'node:crypto'

/** GET /board/live : what changes on the board, as a stream or a poll; and, to streams, who is looking at it. */
export default (ctx) => {
  const notices = ctx.channel('notices')
  const { user } = ctx.state
  ctx.presence(notices, user ? { id: user.id, name: user.name } : { id: randomUUID() })
  return ctx.live(notices)
}
