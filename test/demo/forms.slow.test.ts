import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startBoard } from '../support/board.ts'
import { withoutRequestId } from '../support/log-lines.ts'
import type { Answer } from '../support/request.ts'
import { saidBy, signedUp, Visitor } from '../support/visitor.ts'

const mismatch = 'danger: This form does not belong to your session. Please open the page again and send it once more.'
const kept = 'info: Your text is saved. Sign in to find it in the form.'

const leadsTo = ({ status, headers }: Answer): unknown[] => [status, headers.location]

async function notices(url: string): Promise<unknown[]> {
  return ((await new Visitor(url).get('/api/notices')).json() as { author: string; text: string }[]).map(
    ({ author, text }) => `${author}: ${text}`,
  )
}

describe('sign-up of the demo', () => {
  it('signs in under a new session id, and confirms it once', async (t) => {
    const { url, lines } = await startBoard(t)
    const ann = new Visitor(url)
    await ann.get('/')
    const before = ann.cookies.get('SVCSID')
    const answer = await ann.signUp('Ann')
    assert.deepEqual(leadsTo(answer), [303, '/'])
    assert.notEqual(ann.cookies.get('SVCSID'), before)
    const page = await ann.follow(answer)
    assert.deepEqual(saidBy(page).messages, ['success: Welcome, Ann.'])
    assert.match(page.text, /<span>Ann<\/span>\s*<button class="quiet">Sign out/)
    assert.deepEqual(saidBy(await ann.get('/')).messages, [])
    for (const path of ['/sign-in', '/sign-up']) assert.deepEqual(leadsTo(await ann.get(path)), [303, '/'])

    const old = new Visitor(url)
    old.cookies.set('SVCSID', before ?? '')
    assert.doesNotMatch((await old.get('/')).text, /Ann/)
    assert.doesNotMatch(lines().join('\n'), /password of Ann/)
  })

  it('leads back to the form, once with the name and the errors, never with a password', async (t) => {
    const { url } = await startBoard(t)
    await signedUp(url, 'Ann')
    const visitor = new Visitor(url)
    for (const [name, password, password2, errors] of [
      ['', 'long enough', 'long enough', ['The name is missing.']],
      ['x'.repeat(41), 'long enough', 'long enough', ['The name may have at most 40 characters.']],
      ['Bob', 'seven77', 'seven77', ['The password must have at least 8 characters.']],
      ['Bob', 'long enough', 'long Enough', ['The passwords do not match.']],
      ['', 'short', '', ['The name is missing.', 'The password must have at least 8 characters.']],
      [' aNN ', 'long enough', 'long enough', ['This name is taken.']],
    ] as const) {
      const answer = await visitor.submit('/sign-up', '/sign-up', { name, password, password2 })
      assert.deepEqual(leadsTo(answer), [303, '/sign-up'], name)
      const page = await visitor.follow(answer)
      assert.deepEqual(saidBy(page).errors, errors)
      assert.ok(page.text.includes(`autocomplete="username" value="${name.trim()}"`), page.text)
      assert.doesNotMatch(page.text, /long enough|seven77/i)
      assert.deepEqual(saidBy(await visitor.get('/sign-up')).errors, [])
    }
  })

  it('gives a name to one of two concurrent requests for it', async (t) => {
    const { url } = await startBoard(t)
    const answers = await Promise.all([new Visitor(url).signUp('Ann'), new Visitor(url).signUp('ann')])
    assert.deepEqual(answers.map(({ headers }) => headers.location).sort(), ['/', '/sign-up'])
  })
})

describe('sign-in of the demo', () => {
  it('accepts name and password, and responds identically if either is wrong', async (t) => {
    const { url } = await startBoard(t)
    await signedUp(url, 'Ann')
    const visitor = new Visitor(url)
    for (const [name, password] of [
      ['Ann', 'password of ann'],
      ['Bob', 'password of Ann'],
      ['Ann', ''],
      ['', ''],
    ] as const) {
      const answer = await visitor.submit('/sign-in', '/sign-in', { name, password })
      assert.deepEqual(leadsTo(answer), [303, '/sign-in'])
      const page = await visitor.follow(answer)
      assert.deepEqual(saidBy(page).errors, ['The name or the password is wrong.'])
      assert.ok(page.text.includes(`value="${name}"`))
      assert.doesNotMatch(page.text, /password of/)
    }
    const before = visitor.cookies.get('SVCSID')
    const answer = await visitor.submit('/sign-in', '/sign-in', { name: 'ann', password: 'password of Ann' })
    assert.deepEqual(leadsTo(answer), [303, '/'])
    assert.notEqual(visitor.cookies.get('SVCSID'), before)
    assert.deepEqual(saidBy(await visitor.follow(answer)).messages, ['success: Welcome back, Ann.'])
  })

  it('gives the session another token, so that an earlier one is invalid', async (t) => {
    const { url } = await startBoard(t)
    const signIn = await new Visitor(url).form('/sign-in', '/sign-in')
    const ann = await signedUp(url, 'Ann')
    const known = await ann.form('/', '/notices')
    assert.deepEqual(leadsTo(await ann.send(signIn, { name: 'Ann', password: 'password of Ann' })), [303, '/'])
    assert.deepEqual(leadsTo(await ann.send(known, { text: 'With the old one' })), [302, '/'])
    assert.deepEqual(await notices(url), [])
  })

  it('is required where a user is needed', async (t) => {
    const { url } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    await ann.add('Hers')
    const page = '/sign-in?next=/notices/1/edit'
    assert.deepEqual(leadsTo(await new Visitor(url).get('/notices/1/edit')), [302, page])
    const again = new Visitor(url)
    const form = await again.form(page, page)
    assert.deepEqual(leadsTo(await again.send(form, { name: 'Ann', password: 'wrong' })), [303, page])
    assert.deepEqual(leadsTo(await again.send(form, { name: 'Ann', password: 'password of Ann' })), [303, '/notices/1/edit'])
    const json = await new Visitor(url).get('/notices/1/edit', { accept: 'application/json' })
    assert.equal(json.status, 401)
  })
})

describe('sign-out of the demo', () => {
  it('ends the session and confirms it', async (t) => {
    const { url } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    const session = ann.cookies.get('SVCSID') ?? ''
    const answer = await ann.submit('/', '/sign-out')
    assert.deepEqual(leadsTo(answer), [303, '/'])
    const page = await ann.follow(answer)
    assert.deepEqual(saidBy(page).messages, ['success: You are signed out.'])
    assert.match(page.text, /Sign in/)
    ann.cookies.set('SVCSID', session)
    assert.doesNotMatch((await ann.get('/')).text, /Ann/)
  })

  it('cannot be done by a link', async (t) => {
    const { url } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    assert.equal((await ann.get('/sign-out')).status, 405)
    assert.match((await ann.get('/')).text, /Ann/)
  })
})

describe('a form of the demo', () => {
  it('is refused from another site, on every route, without touching the session', async (t) => {
    const { url, lines } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    await ann.add('Hers')
    const session = ann.cookies.get('SVCSID')
    const { hidden } = await ann.form('/notices/1/edit', '/notices/delete')
    const { hidden: signed } = await new Visitor(url).form('/sign-in', '/sign-in')
    const own = ['/notices', '/notices/edit', '/notices/delete', '/sign-out'].map((action) => ({ action, hidden }))
    const open = ['/sign-in', '/sign-up'].map((action) => ({ action, hidden: signed }))
    const foreign: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
    ]
    for (const form of [...own, ...open]) {
      for (const headers of foreign) {
        const answer = await ann.send({ ...form, multipart: false }, { text: 'Forged' }, undefined, headers)
        assert.deepEqual(leadsTo(answer), [302, '/'], form.action)
        assert.equal(ann.cookies.get('SVCSID'), session)
      }
    }
    assert.deepEqual(await notices(url), ['Ann: Hers'])
    const page = await ann.get('/')
    assert.deepEqual(saidBy(page).messages, ['danger: This form was sent from another site, so nothing was changed.'])
    assert.doesNotMatch(page.text, /Forged/)
    const refusal = '[error] POST /notices (board.add) was refused by the CSRF check: cross_site'
    assert.ok(lines().some((line) => withoutRequestId(line).endsWith(refusal)))
  })

  it('without its token, or with the token of another, is refused with a message', async (t) => {
    const { url } = await startBoard(t)
    const [ann, bob] = [await signedUp(url, 'Ann'), await signedUp(url, 'Bob')]
    const form = await ann.form('/', '/notices')
    const { hidden } = await bob.form('/', '/notices')
    const { hidden: signed } = await new Visitor(url).form('/sign-in', '/sign-in')
    for (const [fields, message] of [
      [{ _csrf: '' }, /^danger: This form came without its security token/],
      [hidden, /^danger: This form does not belong to your session/],
      [signed, /^danger: This form does not belong to your session/],
    ] as const) {
      const answer = await ann.send(form, { ...fields, text: 'Lost?' })
      assert.deepEqual(leadsTo(answer), [302, '/'])
      const page = await ann.follow(answer)
      assert.match(saidBy(page).messages[0] ?? '', message)
      assert.equal(saidBy(page).messages[1], kept)
      assert.match(page.text, />Lost\?<\/textarea>/)
    }
    const signIn = { ...form, action: '/sign-in' }
    const answer = await new Visitor(url).send(signIn, { name: 'Ann', password: 'password of Ann' })
    assert.deepEqual(leadsTo(answer), [302, '/'])
    assert.deepEqual(await notices(url), [])
  })

  it('whose session has ended is refused, and restores its text after the sign-in', async (t) => {
    const { url } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    await ann.add('First')
    const [add, edit] = [await ann.form('/', '/notices'), await ann.form('/notices/1/edit', '/notices/edit')]
    ann.cookies.clear()
    const page = await ann.follow(await ann.send(add, { text: 'A new one' }))
    assert.deepEqual(saidBy(page).messages, [mismatch, kept])
    assert.doesNotMatch(page.text, /A new one/)
    await ann.send(edit, { text: 'Changed' })
    await ann.submit('/sign-in', '/sign-in', { name: 'Ann', password: 'password of Ann' })
    assert.match((await ann.get('/')).text, />A new one<\/textarea>/)
    assert.match((await ann.get('/notices/1/edit')).text, />Changed<\/textarea>/)
    assert.match((await ann.get('/notices/1/edit')).text, />First<\/textarea>/)
    assert.deepEqual(await notices(url), ['Ann: First'])
  })

  it('is accepted in every tab, and again after the back button', async (t) => {
    const { url } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    const [one, two] = [await ann.form('/', '/notices'), await ann.form('/', '/notices')]
    for (const [form, text] of [[two, 'two'], [one, 'one'], [one, 'one again']] as const) {
      assert.deepEqual(leadsTo(await ann.send(form, { text })), [303, '/'])
    }
    assert.deepEqual(await notices(url), ['Ann: one again', 'Ann: one', 'Ann: two'])
    // An old, unseen refusal does not keep the text of an accepted form.
    await ann.send(one, { text: '', _csrf: '' })
    await ann.send(one, { text: 'through' })
    assert.match((await ann.get('/')).text, /aria-invalid="false"><\/textarea>/)
  })
})

describe('the user\'s notice in the demo', () => {
  it('is changed and deleted, with a message each', async (t) => {
    const { url } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    await ann.add('One')
    assert.match((await ann.get('/')).text, /<a class="edit" href="\/notices\/1\/edit">Edit<\/a>/)
    const changed = await ann.submit('/notices/1/edit', '/notices/edit', { text: 'Two' })
    assert.deepEqual(leadsTo(changed), [303, '/'])
    assert.deepEqual(saidBy(await ann.follow(changed)).messages, ['success: Your notice was changed.'])
    assert.deepEqual(await notices(url), ['Ann: Two'])

    const wrong = await ann.submit('/notices/1/edit', '/notices/edit', { text: '' })
    assert.deepEqual(leadsTo(wrong), [303, '/notices/1/edit'])
    assert.deepEqual(saidBy(await ann.follow(wrong)).errors, ['The notice is empty.'])

    const form = await ann.form('/notices/1/edit', '/notices/delete')
    assert.deepEqual(saidBy(await ann.follow(await ann.send(form))).messages, ['success: Your notice was deleted.'])
    assert.deepEqual(await notices(url), [])
    const again = await ann.send(form)
    assert.deepEqual(saidBy(await ann.follow(again)).messages, ['warning: This notice no longer exists.'])
  })

  it('cannot be changed by another user, who has a valid token and a valid _resource_id', async (t) => {
    const { url } = await startBoard(t)
    const [ann, bob] = [await signedUp(url, 'Ann'), await signedUp(url, 'Bob')]
    await ann.add('Hers')
    await bob.add('His')
    assert.equal((await bob.get('/notices/1/edit')).status, 403)
    assert.match((await bob.get('/')).text, /His[^]*href="\/notices\/2\/edit"[^]*Hers/)
    assert.doesNotMatch((await bob.get('/')).text, /\/notices\/1\/edit/)
    const { _resource_id: id = '' } = (await ann.form('/notices/1/edit', '/notices/edit')).hidden
    for (const action of ['/notices/edit', '/notices/delete']) {
      const form = await bob.form('/notices/2/edit', action)
      assert.equal((await bob.send(form, { _resource_id: id, text: 'Mine now' })).status, 403)
    }
    assert.deepEqual(await notices(url), ['Bob: His', 'Ann: Hers'])
  })

  it('is not touched by a form whose _resource_id is missing or was tampered with', async (t) => {
    const { url } = await startBoard(t)
    const ann = await signedUp(url, 'Ann')
    await ann.add('One')
    await ann.add('Two')
    for (const action of ['/notices/edit', '/notices/delete']) {
      const form = await ann.form('/notices/1/edit', action)
      const [payload = '', signature = ''] = (form.hidden['_resource_id'] ?? '').split('.')
      const text = Buffer.from(payload, 'base64').toString()
      assert.match(text, /^1\|\d+$/)
      const other = Buffer.from(text.replace('1', '2')).toString('base64')
      const damaged = signature.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
      const ids = ['', '1', payload, `${other}.${signature}`, `${payload}.${damaged}`]
      for (const id of ids) {
        const answer = await ann.send(form, { _resource_id: id, text: 'Tampered' })
        assert.deepEqual(leadsTo(answer), [303, '/'])
        const { messages } = saidBy(await ann.follow(answer))
        assert.deepEqual(messages, ['warning: This form is damaged. Please open it again.'])
      }
    }
    assert.deepEqual(await notices(url), ['Ann: Two', 'Ann: One'])
  })
})
