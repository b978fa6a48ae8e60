import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ReloadError } from '../../lib/control/commands.ts'
import type { Files } from '../support/application.ts'
import { makeApplication } from './application-support.ts'

const route = (name: string, action = 'a.mjs'): object => ({ name, url: `/${name.replace('.', '/')}`, action })
const action = 'export default () => "a"'

async function problemsOf(reload: Promise<unknown>): Promise<ReloadError['problems']> {
  try {
    await reload
  } catch (error) {
    assert.ok(error instanceof ReloadError, String(error))
    return error.problems
  }
  return assert.fail('it was not refused')
}

describe('the start of an application', () => {
  it('registers the valid records of all files, in the order of the file names', async (t) => {
    const { application, names } = makeApplication(t, {
      'a.mjs': action,
      'routes/2.json': [route('z')],
      'routes/1.json': [route('b'), route('a')],
    })
    const { problems, broken, incomplete, notes } = await application.start()
    assert.deepEqual([names(), problems, broken, incomplete, notes], [['b', 'a', 'z'], [], [], [], []])
  })

  it('skips invalid records and reports the problem of each', async (t) => {
    const { application, names } = makeApplication(t, {
      'a.mjs': action,
      'routes/a.json': [
        route('a'),
        { name: 'b', action: 'a.mjs' },
        route('a'),
        { ...route('c'), middleware: 'none' },
        route('svc.x'),
      ],
    })
    const { problems } = await application.start()
    assert.deepEqual(names(), ['a'])
    assert.deepEqual(problems.map(({ file, index, name }) => [file, index, name]), [
      ['a.json', 1, 'b'],
      ['a.json', 2, 'a'],
      ['a.json', 3, 'c'],
      ['a.json', 4, 'svc.x'],
    ])
  })

  it('distinguishes broken modules from actions that do not exist yet', async (t) => {
    const { application, names } = makeApplication(t, {
      'bad.mjs': 'export default (',
      'a.mjs': action,
      'routes/a.json': [route('a', 'bad.mjs'), route('b', 'none.mjs'), route('c', 'a.mjs@none'), { ...route('d'), colour: 1 }],
    })
    const { problems, broken, incomplete, notes } = await application.start()
    assert.deepEqual(names(), ['a', 'b', 'c', 'd'])
    assert.deepEqual([problems, broken.map(({ name }) => name)], [[], ['a']])
    assert.deepEqual([incomplete.map(({ name }) => name), notes.map(({ name }) => name)], [['b', 'c'], ['d']])
  })

  it('fails for an invalid file, and runs no setup', async (t) => {
    const key = `set-up-${process.pid}`
    const { application, names } = makeApplication(t, {
      'a.mjs': action,
      'routes/a.json': [route('a')],
      'routes/b.json': '{}',
      'routes/middleware/config.json': { load: ['m.mjs'] },
      'routes/middleware/m.mjs': `export const setup = () => { process.emit('${key}') }`,
    })
    let setUp = 0
    process.on(key, () => (setUp += 1))
    t.after(() => process.removeAllListeners(key))
    const [problem, ...others] = await problemsOf(application.start())
    assert.deepEqual([problem?.file, problem?.index, others], ['b.json', null, []])
    assert.deepEqual([names(), setUp], [[], 0])
  })

  it('fails for middleware that does not load', async (t) => {
    const { application } = makeApplication(t, { 'routes/middleware/config.json': { load: ['m.mjs'] }, 'routes/.keep': '' })
    await assert.rejects(application.start(), { name: 'MiddlewareError', file: 'm.mjs' })
  })

  it('warns of unused keys in the middleware configuration', async (t) => {
    const { application, folder } = makeApplication(t, { 'routes/middleware/config.json': { lod: [] }, 'routes/.keep': '' })
    const { notes } = await application.start()
    assert.deepEqual(notes.map(({ file, index }) => [file, index]), [[join(folder, 'routes/middleware/config.json'), null]])
  })
})

describe('the faults of an application', () => {
  it('list routes left out or answering 500, without positions, except those deleted at run time', async (t) => {
    const { application, write } = makeApplication(t, {
      'a.mjs': action,
      'routes/a.json': [route('a'), route('b', 'none.mjs'), { name: 'c', action: 'a.mjs' }],
    })
    await application.start()
    const [wrong, missing, ...none] = application.faults()
    assert.match(wrong ?? '', /^a\.json: route "c": .*url/)
    assert.match(missing ?? '', /^a\.json: route "b": .*none\.mjs/)
    assert.deepEqual(none, [])
    await application.apply([{ at: 1, name: 'd', record: route('d', 'later.mjs') }, { at: 2, name: 'b' }])
    assert.deepEqual(application.faults().slice(0, 1), [wrong])
    assert.match(application.faults().slice(1).join(), /^route "d", added while the server ran: .*later\.mjs[^,]*$/)
    write({ 'routes/a.json': [route('a')] })
    await application.reload([])
    assert.deepEqual(application.faults(), [])
  })
})

describe('an application without a folder of route files', () => {
  it('starts with a warning, and can be reloaded', async (t) => {
    const { application, folder } = makeApplication(t, {})
    const { problems, notes } = await application.start()
    assert.deepEqual([problems, notes.map(({ file }) => file)], [[], [join(folder, 'routes')]])
    assert.equal((await application.reload()).totalLoaded, 0)
  })
})

describe('a reload', () => {
  it('runs no setup of a changed middleware if there is another problem', async (t) => {
    const key = `renewed-${process.pid}`
    const { application, write } = makeApplication(t, {
      'a.mjs': action,
      'routes/a.json': [route('a')],
      'routes/middleware/config.json': { load: ['m.mjs'] },
      'routes/middleware/m.mjs': 'export const setup = () => {}',
    })
    await application.start()
    let setUp = 0
    process.on(key, () => (setUp += 1))
    t.after(() => process.removeAllListeners(key))
    write({ 'routes/b.json': '[', 'routes/middleware/m.mjs': `export const setup = () => { process.emit('${key}') }` })
    await problemsOf(application.reload())
    assert.equal(setUp, 0)
    write({ 'routes/b.json': '[]' })
    await application.reload()
    assert.equal(setUp, 1)
  })

  it('returns what it did', async (t) => {
    const files = { 'a.mjs': action, 'routes/a.json': [route('a'), route('b'), route('c')] }
    const { application, names, write } = makeApplication(t, files)
    await application.start()
    write({ 'routes/a.json': [route('d'), { ...route('b'), scope: 'x' }, route('c'), route('e', 'none.mjs')] })
    const { warnings, ...result } = await application.reload()
    assert.deepEqual(result, { totalDeleted: 3, totalLoaded: 4, added: ['d', 'e'], removed: ['a'], changed: ['b'] })
    assert.deepEqual(warnings, ['a.json:1:160: route "e": Cannot load none.mjs: there is no such file'])
    assert.deepEqual(names(), ['d', 'b', 'c', 'e'])
  })

  const wrong: readonly [title: string, files: Files, place: readonly [string, number | null, string]][] = [
    ['an invalid record', { 'routes/a.json': [route('b'), { name: 'c' }] }, ['a.json', 1, 'c']],
    ['a name taken in another file', { 'routes/b.json': [route('a')] }, ['b.json', 0, 'a']],
    ['an invalid file', { 'routes/b.json': '[' }, ['b.json', null, '']],
    ['a broken module', { 'a.mjs': 'export default (' }, ['a.json', 0, 'a']],
    ['an invalid middleware configuration', { 'routes/middleware/config.json': '[' }, ['routes/middleware/config.json', null, '']],
    ['missing middleware', { 'routes/middleware/config.json': { load: ['m.mjs'] } }, ['m.mjs', null, '']],
  ]
  for (const [title, files, [file, index, name]] of wrong) {
    it(`is refused for ${title}, and the old table stays`, async (t) => {
      const { application, folder, names, write } = makeApplication(t, { 'a.mjs': action, 'routes/a.json': [route('a')] })
      await application.start()
      write(files)
      const problems = await problemsOf(application.reload())
      const place = file.includes('/') ? join(folder, file) : file
      const places = problems.map((problem) => JSON.stringify([problem.file, problem.index, problem.name]))
      assert.ok(places.includes(JSON.stringify([place, index, name])), places.join())
      assert.ok(problems.every(({ error }) => error !== ''))
      assert.deepEqual(names(), ['a'])
    })
  }

  it('that is refused is a warning until one succeeds', async (t) => {
    const { application, write } = makeApplication(t, { 'a.mjs': action, 'routes/a.json': [route('a')] })
    await application.start()
    assert.deepEqual([application.warnings, application.isReloadRefused], [[], false])
    write({ 'routes/a.json': '{' })
    await problemsOf(application.reload())
    const refused = /^the last reload was refused, and the next start reads the same files: a\.json:/
    assert.match(application.warnings.join('\n'), refused)
    assert.equal(application.isReloadRefused, true)
    write({ 'routes/a.json': [route('a')], 'routes/middleware/config.json': '{' })
    await problemsOf(application.reload())
    assert.match(application.warnings.join('\n'), /^the last reload was refused, .*config\.json/)
    write({ 'routes/middleware/config.json': {} })
    await application.reload()
    assert.deepEqual([application.warnings, application.isReloadRefused], [[], false])
  })

  it('is refused, with a reason, when the folder of the routes has been removed', async (t) => {
    const { application, folder, names } = makeApplication(t, { 'a.mjs': action, 'routes/a.json': [route('a')] })
    await application.start()
    rmSync(join(folder, 'routes'), { recursive: true })
    const [problem] = await problemsOf(application.reload())
    assert.deepEqual([problem?.file, names()], [join(folder, 'routes'), ['a']])
  })

  it('is refused when a module cannot be read', async (t) => {
    const { application, folder, write } = makeApplication(t, { 'a.mjs': action, 'routes/a.json': [route('a')] })
    await application.start()
    rmSync(join(folder, 'a.mjs'))
    write({ 'a.mjs/file': 'a folder in place of the module' })
    const [problem] = await problemsOf(application.reload())
    assert.match(problem?.error ?? '', /a\.mjs|EISDIR/)
  })

  it('reads the files again for the second of two concurrent reloads', async (t) => {
    const { application, write } = makeApplication(t, { 'a.mjs': action, 'routes/a.json': [route('a')] })
    await application.start()
    const first = application.reload()
    write({ 'routes/a.json': [route('a'), route('b')] })
    const second = application.reload()
    const [one, two] = await Promise.all([first, second])
    assert.equal(two.totalLoaded, 2)
    assert.equal(two.totalDeleted, one.totalLoaded)
  })
})

describe('an inspection', () => {
  it('finds the same as a start, runs no setup and changes nothing', async (t) => {
    const { application, names } = makeApplication(t, {
      'a.mjs': action,
      'routes/a.json': [{ ...route('a'), middleware: 'm' }, route('b', 'none.mjs'), { name: 'c' }],
      'routes/middleware/config.json': { load: ['m.mjs'] },
      'routes/middleware/m.mjs': "export default () => {}; export const setup = () => { throw new Error('it ran') }",
    })
    const { routes, problems, broken, incomplete } = await application.inspect()
    assert.deepEqual(routes.map(({ record }) => record.name), ['a', 'b'])
    assert.deepEqual([problems.map(({ name }) => name), broken, incomplete.map(({ name }) => name)], [['c', 'c'], [], ['b']])
    assert.deepEqual(names(), [])
  })
})

describe('the stop of an application', () => {
  it('refuses a start and a reload afterwards', async (t) => {
    const { application } = makeApplication(t, { 'a.mjs': action, 'routes/a.json': [route('a')] })
    await application.stop()
    const message = 'Cannot load the application: the server is being stopped'
    await assert.rejects(application.start(), { message })
    await assert.rejects(application.reload(), { message })
  })

  it('aborts a running start, and ends what it has started', async (t) => {
    const key = `stop-${process.pid}`
    const { application, names } = makeApplication(t, {
      'a.mjs': action,
      'routes/a.json': [route('a')],
      'routes/middleware/config.json': { load: ['m.mjs'] },
      'routes/middleware/m.mjs': `export const setup = async () => {
        process.emit('${key}', 'up')
        await new Promise((resolve) => process.once('${key}-go', resolve))
        return () => process.emit('${key}', 'down')
      }`,
    })
    const steps: string[] = []
    const up = new Promise<void>((resolve) => {
      process.on(key, (step: string) => {
        steps.push(step)
        resolve()
      })
    })
    t.after(() => process.removeAllListeners(key))
    const started = application.start()
    const refused = assert.rejects(started, { message: 'Cannot load the application: the server is being stopped' })
    await up
    const stopped = application.stop()
    process.emit(`${key}-go` as 'SIGUSR2') // Any event name works, but the types allow only a few.
    await Promise.all([refused, stopped])
    assert.deepEqual([steps, names()], [['up', 'down'], []])
  })
})
