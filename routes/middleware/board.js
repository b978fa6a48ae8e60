import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { changes } from '../board/changes.js'
import { noticeForm, typed } from '../board/form.js'
import { keepBoard } from '../board/keep.js'
import { asJson, dropBefore } from '../board/notices.js'

const dayMs = 24 * 3600 * 1000
const root = fileURLToPath(new URL('../..', import.meta.url))

/** Middleware `visitor`: sets `state.user` if a user is signed in. Unlike SVC_MwIsAuth, it admits guests too. */
export function visitor(ctx, next) {
  ctx.setHeader('Cache-Control', 'no-store') // Pages name the user: after the sign-out the back button must not show them.
  ctx.state.user = ctx.session.get('_auth_user')
  return next()
}

/** Middleware `keepTyped`, before SVC_MwCsrf: keeps the text of a form sent after its session had ended. */
export async function keepTyped({ headers, flash, readForm, UGetResource }, next) {
  flash('csrf').clear() // Drops an old refusal that was never shown.
  await next()
  // Text sent by another site was not typed by the user.
  if (headers['sec-fetch-site'] !== 'same-origin' || !flash('csrf').has('error')) return
  const text = typed(await readForm(), 'text')
  if (text === '') return
  const id = await UGetResource()
  flash(noticeForm(id === '' ? 'new' : id)).set({ input: { text } })
  const place = id === '' ? 'the form' : 'the page to edit the notice'
  flash('board').set({ type: 'info', message: `Your text is saved. Sign in to find it in ${place}.` })
}

/**
 * Runs at the start: from then on it saves the board, publishes changes, and removes notices after a day. Returns the
 * teardown for the stop.
 */
export async function setup(app) {
  const log = app.logger('app')
  const { number, count } = app.process
  if (count > 1 && number === 1) log.warn(`the board is in process memory: each of the ${count} processes has its own board`)
  const endKeeping = await keepBoard(resolve(root, app.config['paths.cache'], 'board.json'), log, number === 1)
  const channel = app.channel('notices')
  const publish = (kind, notice) => {
    channel.publish({ kind, notice: kind === 'removed' ? { id: notice.id } : asJson(notice) })
  }
  changes.on('notice', publish)
  const dropOld = () => {
    const count = dropBefore(new Date(Date.now() - dayMs))
    if (count > 0) log(`removed ${count} notices older than a day`)
  }
  dropOld()
  const timer = setInterval(dropOld, 60_000)
  return () => {
    clearInterval(timer)
    changes.off('notice', publish)
    return endKeeping()
  }
}
