import { readDigest, whyNoJobs } from './digest.js'
import { addNotice, allNotices } from './notices.js'

const samples = [
  'The library is open until nine tonight.',
  'Found: a red umbrella, at the north gate.',
  'Who has a long ladder for Saturday?',
  'Choir practice moves to Thursday, at seven.',
  'Fresh bread at the market from eight.',
]

/** GET /tour : what there is to see, with the last digest. */
export default async ({ channel, view }) => {
  const lastId = await channel('digest').last_id // Read before the file: a change in between is sent twice, rather than never.
  return view('routes/board/tour.html', { lastId, digest: await readDigest(), whyNoJobs })
}

/** GET /tour/live : each new digest, as a stream or a poll. */
export const live = (ctx) => ctx.live(ctx.channel('digest'))

/** POST /tour/notice : posts a sample notice, so that a visitor can see it arrive without signing up. */
export const notice = ({ flash, redirect }) => {
  addNotice({ author: 'The tour', text: samples[allNotices().length % samples.length] })
  flash('tour-live').set({ type: 'success', message: 'Posted. It is in the other window already.' })
  return redirect('/tour#live', 303)
}

/** POST /tour/digest : enqueues the job. While one with this key waits, no other is added. */
export const digest = async ({ enqueue, flash, redirect, log }) => {
  try {
    const id = await enqueue('board.digest', undefined, { key: 'tour' })
    flash('tour-digest').set({ type: 'success', message: `Job ${id} is stored. It runs beside the requests.` })
  } catch (error) {
    log.error('the digest was not enqueued', error)
    flash('tour-digest').set({ type: 'danger', message: 'The job could not be stored: the log says why.' })
  }
  return redirect('/tour#digest', 303)
}
