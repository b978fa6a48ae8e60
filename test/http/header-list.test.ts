import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HeaderList } from '../../lib/http/header-list.ts'

describe('HeaderList', () => {
  it('sets in place of all of a name, whatever its case, and appends beside them', () => {
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

  it('leaves the fields as they are that it was filled with, since other answers have them too', () => {
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

  it('refuses what no field may hold, and leaves the list as it was', () => {
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

  it('takes a tab and Latin-1, as RFC 9110 section 5.5 does', () => {
    const list = new HeaderList()
    list.set('X-A', 'caf\u00e9\tau lait')
    assert.deepEqual(list.flat, ['X-A', 'caf\u00e9\tau lait'])
  })

  it('refuses the framing fields, which the server sets', () => {
    const list = new HeaderList()
    for (const name of ['Content-Length', 'content-length', 'Transfer-Encoding']) {
      assert.throws(() => list.set(name, '3'), { name: 'TypeError', message: new RegExp(`^Cannot set ${name}: the server sets it by the body: leave it out; .* streams in chunks$`) })
      assert.throws(() => list.append(name, '3'), TypeError)
    }
  })

  it('notes when a field is set that Node looks at, whatever its case', () => {
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

  it('treats names alike, however many and however long there were before', () => {
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

  it('sends the text that it has checked of a value that gives another each time', () => {
    const texts = ['good', 'bad\r\nX-Forged: 1']
    const list = new HeaderList()
    list.set('X-A', [{ toString: () => texts.shift() } as unknown as string])
    assert.deepEqual(list.flat, ['X-A', 'good'])
    assert.throws(() => list.set('X-A', {} as unknown as string), TypeError)
    assert.deepEqual(list.flat, ['X-A', 'good'])
  })
})
