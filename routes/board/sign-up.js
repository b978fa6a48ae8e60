import { shownAgain, typed } from './form.js'
import { enterAs } from './sign-in.js'
import { addUser, nameProblem } from './users.js'

/** GET /sign-up : the form. */
export default ({ state, flash, view, redirect }) =>
  state.user ? redirect('/', 303) : view('routes/board/sign-up.html', shownAgain(flash('sign-up')))

/** POST /sign-up : adds the user and signs them in, or shows the form again, without the passwords. */
export const add = async (ctx) => {
  const { readForm, flash, redirect, log, password } = ctx
  const form = await readForm()
  const name = typed(form, 'name')
  const text = form.get('password') ?? ''
  const errors = check(name, text, form.get('password2') ?? '')
  const isValid = Object.keys(errors).length === 0
  const user = isValid ? await addUser(name, text, password) : undefined
  if (isValid && !user) errors.name = 'This name is taken.'
  if (!user) {
    flash('sign-up').set({ errors, input: { name } })
    return redirect('/sign-up', 303)
  }
  log(`${name} signed up`)
  return enterAs(user, ctx, `Welcome, ${name}.`)
}

function check(name, password, password2) {
  const errors = {}
  const problem = nameProblem(name)
  if (problem) errors.name = problem
  if (password.length < 8) errors.password = 'The password must have at least 8 characters.'
  else if (password2 !== password) errors.password2 = 'The passwords do not match.'
  return errors
}
