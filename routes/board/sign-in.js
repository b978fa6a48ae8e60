import { shownAgain, typed } from './form.js'
import { findUser } from './users.js'

/** GET /sign-in : the form. */
export default ({ state, flash, view, redirect }) =>
  state.user ? redirect('/', 303) : view('routes/board/sign-in.html', shownAgain(flash('sign-in')))

/** POST /sign-in : the same reply to a wrong name and to a wrong password. A real application also limits attempts. */
export const enter = async (ctx) => {
  const { readForm, flash, redirect, rawQuery, log, password } = ctx
  const form = await readForm()
  const name = typed(form, 'name')
  const user = await findUser(name, form.get('password') ?? '', password)
  if (!user) {
    flash('sign-in').set({ errors: { password: 'The name or the password is wrong.' }, input: { name } })
    return redirect(`/sign-in${rawQuery}`, 303)
  }
  log(`${user.name} signed in`)
  return enterAs(user, ctx, `Welcome back, ${user.name}.`)
}

/** POST /sign-out : ends the session with its data and open connections. Values set afterwards start a new one. */
export const leave = ({ signOut, flash, redirect }) => {
  signOut()
  flash('board').set({ type: 'success', message: 'You are signed out.' })
  return redirect('/', 303)
}

/** Signs a user in under a new, unknown session id, and returns to the page that required it. */
export function enterAs(user, { signIn, flash, redirect, returnTo }, message) {
  signIn(user)
  flash('board').set({ type: 'success', message })
  return redirect(returnTo('/'), 303)
}
