import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { changes } from '../board/changes.js'
import { noticeForm, typed } from '../board/form.js'
import { keepBoard } from '../board/keep.js'
import { asJson, dropBefore } from '../board/notices.js'

const dayMs = 24 * 3600 * 1000
const root = fileURLToPath(new URL('../..', import.meta.url))

/** Middleware `visitor`: tells who is signed in, if anybody is, where SVC_MwIsAuth would let nobody else pass. */
export function visitor(ctx, next) {
  ctx.setHeader('Cache-Control', 'no-store') // Pages name the user: after the sign-out the back button must not show them.
  ctx.state.user = ctx.session.get('_auth_user')
  return next()
}

/** Middleware `keepTyped`, before SVC_MwCsrf: the text of a form that came after its session had ended is not lost. */
export async function keepTyped({ headers, flash, readForm, UGetResource }, next) {
  flash('csrf').clear() // An old refusal that nobody saw is not this one.
  await next()
  // What another site has sent is not what the user typed.
  if (headers['sec-fetch-site'] !== 'same-origin' || !flash('csrf').has('error')) return
  const text = typed(await readForm(), 'text')
  if (text === '') return
  const id = await UGetResource()
  flash(noticeForm(id === '' ? 'new' : id)).set({ input: { text } })
  const place = id === '' ? 'The form' : 'The page to edit the notice'
  flash('board').set({ type: 'info', message: `Your text is kept. ${place} has it, once you are signed in.` })
}

/**
 * Runs at the start: from then on the board is kept, what changes is published, and notices go after a day. What it
 * returns runs at the stop.
 */
export async function setup(app) {
  const log = app.logger('app')
  const { number, count } = app.process
  if (count > 1 && number === 1) log.warn(`the board is in the memory of each process: with ${count} of them each has a board of its own`)
  const endKeeping = await keepBoard(resolve(root, app.config['paths.cache'], 'board.json'), log, number === 1)
  const channel = app.channel('notices')
  const publish = (kind, notice) => {
    channel.publish({ kind, notice: kind === 'removed' ? { id: notice.id } : asJson(notice) })
  }
  changes.on('notice', publish)
  const dropOld = () => {
    const count = dropBefore(new Date(Date.now() - dayMs))
    if (count > 0) log(`${count} notices were older than a day`)
  }
  dropOld()
  const timer = setInterval(dropOld, 60_000)
  return () => {
    clearInterval(timer)
    changes.off('notice', publish)
    return endKeeping()
  }
}
