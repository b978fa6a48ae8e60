import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HeaderList } from '../../lib/http/header-list.ts'

describe('HeaderList', () => {
  it('replaces all fields of a name with set, ignoring case, and adds one with append', () => {
    const list = new HeaderList()
    list.set('X-A', '1')
    list.append('x-a', '2')
    list.set('X-B', 3)
    assert.deepEqual(list.flat, ['X-A', '1', 'x-a', '2', 'X-B', '3'])
    assert.equal(list.get('x-A'), '1')
    assert.equal(list.get('X-C'), undefined)
    list.set('x-A', ['4', '5'])
    assert.deepEqual(list.flat, ['X-B', '3', 'x-A', '4', 'x-A', '5'])
    list.delete('X-a')
    assert.deepEqual(list.flat, ['X-B', '3'])
    list.set('X-B', [])
    assert.deepEqual(list.flat, [])
  })

  it('does not change the fields passed to fill, which other responses share', () => {
    const fields = ['X-A', '1', 'X-B', '2']
    const changes: ((list: HeaderList) => void)[] = [
      (list) => list.set('X-A', '3'),
      (list) => list.append('X-A', '3'),
      (list) => list.append('X-A', '3', () => true),
      (list) => list.delete('X-B'),
      (list) => list.fill(['X-C', '3']),
    ]
    for (const change of changes) {
      const list = new HeaderList()
      list.fill(fields)
      change(list)
      assert.notDeepEqual(list.flat, fields)
      assert.deepEqual(fields, ['X-A', '1', 'X-B', '2'])
    }
  })

  it('refuses invalid fields, and leaves the list unchanged', () => {
    const list = new HeaderList()
    list.set('X-A', 'good')
    const names = ['', 'a b', 'a:b', 'a\r\nb', 'é', 'a\0']
    for (const name of names) assert.throws(() => list.set(name, 'x'), TypeError, JSON.stringify(name))
    for (const value of ['a\r\nSet-Cookie: b=c', 'a\nb', 'a\rb', 'a\0b', 'a\x7fb', '😀', 'a\u0100']) {
      assert.throws(() => list.set('X-A', value), TypeError, JSON.stringify(value))
      assert.throws(() => list.set('X-A', ['fine', value]), TypeError)
      assert.throws(() => list.append('X-A', value), TypeError)
    }
    for (const value of [undefined, null, Symbol('a')]) assert.throws(() => list.set('X-A', value as unknown as string), TypeError)
    assert.deepEqual(list.flat, ['X-A', 'good'])
  })

  it('accepts a tab and Latin-1, as RFC 9110 section 5.5 does', () => {
    const list = new HeaderList()
    list.set('X-A', 'caf\u00e9\tau lait')
    assert.deepEqual(list.flat, ['X-A', 'caf\u00e9\tau lait'])
  })

  it('refuses the framing fields, which the server sets', () => {
    const list = new HeaderList()
    const message = /^Cannot set Transfer-Encoding: the server sets it according to the body: leave it out; .* streams in chunks$/
    assert.throws(() => list.set('Transfer-Encoding', 'chunked'), { name: 'TypeError', message })
    for (const name of ['Content-Length', 'content-length', 'Transfer-Encoding']) {
      assert.throws(() => list.append(name, '3'), TypeError)
    }
  })

  it('keeps a Content-Length apart, and refuses one that is no number of bytes', () => {
    const list = new HeaderList()
    list.set('content-Length', '37')
    assert.deepEqual([list.flat, list.length], [[], 37])
    list.set('Content-Length', 0)
    assert.equal(list.length, 0)
    for (const value of ['', '-1', '1.5', 'a', '1e3', '1'.repeat(16), -1, 0.5, Number.NaN, ['1', '2']]) {
      assert.throws(() => list.set('Content-Length', value), { name: 'TypeError', message: /^Cannot set Content-Length: it must be a number of bytes: it is / })
    }
    assert.equal(list.length, 0)
  })

  it('records when a field is set that Node interprets, ignoring case', () => {
    const plain = new HeaderList()
    plain.set('X-Connection', 'a')
    plain.append('Set-Cookie', 'a=b')
    assert.equal(plain.plain, true)
    for (const name of ['Connection', 'DATE', 'keep-alive', 'Trailer', 'Expect', 'Content-Disposition']) {
      const set = new HeaderList()
      set.set(name, 'a')
      const appended = new HeaderList()
      appended.append(name, 'a')
      assert.deepEqual([set.plain, appended.plain], [false, false], name)
    }
  })

  it('treats names alike, however many and long earlier names were', () => {
    for (let count = 0; count < 600; count += 1) {
      const list = new HeaderList()
      const name = `X-${count}${'a'.repeat(count % 100)}`
      list.set(name.toUpperCase(), 'a')
      list.set(name, 'b')
      assert.deepEqual([list.flat, list.get(name.toLowerCase()), list.plain], [[name, 'b'], 'b', true])
      assert.throws(() => list.set(`${name} `, 'c'), TypeError)
    }
    const list = new HeaderList()
    list.set('Trailer', 'a')
    assert.equal(list.plain, false)
  })

  it('sends the checked text of a value that converts differently each time', () => {
    const texts = ['good', 'bad\r\nX-Forged: 1']
    const list = new HeaderList()
    list.set('X-A', [{ toString: () => texts.shift() } as unknown as string])
    assert.deepEqual(list.flat, ['X-A', 'good'])
    assert.throws(() => list.set('X-A', {} as unknown as string), TypeError)
    assert.deepEqual(list.flat, ['X-A', 'good'])
  })
})
