import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CommandHandlers, ReloadResult } from '../../lib/control/commands.ts'
import { ReloadError, describe as describeProblem, describeAll } from '../../lib/control/commands.ts'
import { createLocalControl } from '../../lib/control/local.ts'

const result: ReloadResult = { totalDeleted: 0, totalLoaded: 1, added: [], removed: [], changed: [], warnings: [] }

function controlOf(handlers: Partial<CommandHandlers>) {
  return createLocalControl(handlers as CommandHandlers) // each test applies only the commands that it gives
}

describe('the control of one process', () => {
  it('answers what the command answers', async () => {
    const control = controlOf({ 'routes.reload': () => result })
    assert.equal(await control.apply({ type: 'routes.reload' }), result)
  })

  it('applies what changes the routes one after the other, in the order it came', async () => {
    const steps: string[] = []
    let count = 0
    const control = controlOf({
      'routes.reload': async () => {
        const number = ++count
        steps.push(`in ${number}`)
        await new Promise((resolve) => setImmediate(resolve))
        steps.push(`out ${number}`)
        return result
      },
    })
    await Promise.all([1, 2, 3].map(() => control.apply({ type: 'routes.reload' })))
    assert.deepEqual(steps, ['in 1', 'out 1', 'in 2', 'out 2', 'in 3', 'out 3'])
  })

  it('goes on after a command that failed', async () => {
    let count = 0
    const control = controlOf({
      'routes.reload': () => {
        if (++count === 1) throw new Error('first')
        return result
      },
    })
    const [first, second] = await Promise.allSettled([
      control.apply({ type: 'routes.reload' }),
      control.apply({ type: 'routes.reload' }),
    ])
    assert.deepEqual([first.status, second.status], ['rejected', 'fulfilled'])
  })

  it('does not let a stop or the logs wait for a reload that hangs', async () => {
    const done: string[] = []
    const control = controlOf({
      'routes.reload': () => new Promise<never>(() => {}),
      'logs.reopen': () => void done.push('logs'),
      stop: () => void done.push('stop'),
    })
    void control.apply({ type: 'routes.reload' })
    await control.apply({ type: 'logs.reopen' })
    await control.apply({ type: 'stop' })
    assert.deepEqual(done, ['logs', 'stop'])
  })

  it('rejects rather than throws when a command fails at once', async () => {
    const control = controlOf({
      stop: () => {
        throw new Error('no')
      },
    })
    await assert.rejects(control.apply({ type: 'stop' }), { message: 'no' })
  })
})

describe('a ReloadError', () => {
  it('says every problem with its place', () => {
    const problems = [
      { file: 'a.json', index: null, name: '', error: 'it is empty' },
      { file: 'b.json', index: 2, name: 'b.c', error: 'no url' },
      { file: 'b.json', index: 3, name: '', error: 'no name' },
    ]
    const error = new ReloadError('Cannot reload', problems)
    assert.equal(error.message, 'Cannot reload: a.json: it is empty; b.json[2]: route "b.c": no url; b.json[3]: no name')
    assert.deepEqual(error.problems, problems)
    assert.equal(describeProblem({ file: 'a', index: 0, name: 'n', error: 'e' }), 'a[0]: route "n": e')
    const all = [...'bcdefgh'].map((name, index) => ({ file: 'a', index, name, error: 'the same' }))
    const [one, whole] = [{ file: 'a', index: 9, name: 'x', error: 'another' }, { file: 'b', index: null, name: '', error: 'the same' }]
    assert.deepEqual(describeAll([whole, ...all, one]), [
      'b: the same',
      'a: routes "b", "c", "d", "e", "f" and 2 others: the same',
      'a[9]: route "x": another',
    ])
  })
})
