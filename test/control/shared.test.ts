import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { NotEverywhereError, RouteRefusedError, type Command, type CommandHandlers } from '../../lib/control/commands.ts'
import type { AdminState, Change, Relay } from '../../lib/control/relay.ts'
import { createSharedControl, follow } from '../../lib/control/shared.ts'

const adminState: AdminState = { user: 'root', password: 'hash', secret: 'secret', keySaved: true }

/** A control whose relay notes what it is asked, among what the handlers note. */
function make(handlers: Partial<CommandHandlers>, missing: readonly string[] = []) {
  const steps: string[] = []
  const shared: Change[] = []
  const relay: Relay = {
    turn: async () => {
      steps.push('turn')
      return () => void steps.push('end')
    },
    share: async (change) => {
      steps.push('share')
      shared.push(change)
      return missing
    },
    ask: async ({ type }) => void steps.push(`ask ${type}`),
  }
  // Each test applies only the commands that it gives.
  const control = createSharedControl({ handlers: handlers as CommandHandlers, relay, adminState: () => adminState })
  return { control, steps, shared }
}

describe('the control of one of several processes', () => {
  it('carries out what all have in common in its turn, here first, and answers what was answered here', async () => {
    const made = make({
      'routes.delete': () => {
        made.steps.push('here')
        return { deleted: true }
      },
    })
    assert.deepEqual(await made.control.apply({ type: 'routes.delete', name: 'a' }), { deleted: true })
    assert.deepEqual(made.steps, ['turn', 'here', 'share', 'end'])
    assert.deepEqual(made.shared, [{ command: { type: 'routes.delete', name: 'a' } }])
  })

  it('waits for no turn where the order does not matter', async () => {
    const { control, steps } = make({ 'bench.start': () => {} })
    await control.apply({ type: 'bench.start' })
    assert.deepEqual(steps, ['share'])
  })

  it('shares nothing that failed here, and lets the next one begin', async () => {
    const refused = new RouteRefusedError('a', false, ['wrong'])
    const { control, steps } = make({
      'routes.add': () => {
        throw refused
      },
    })
    await assert.rejects(control.apply({ type: 'routes.add', record: {}, persist: false }), refused)
    assert.deepEqual(steps, ['turn', 'end'])
  })

  it('says which process has not taken it up', async () => {
    const { control, steps } = make({ 'cache.clear': () => ({ deleted: 1, path: 'p' }) }, ['process 3: no'])
    await assert.rejects(control.apply({ type: 'cache.clear' }), (error: unknown) => {
      assert.ok(error instanceof NotEverywhereError)
      assert.equal(error.message, 'cache.clear has taken effect, but not everywhere: process 3: no')
      return true
    })
    assert.deepEqual(steps, ['share'])
  })

  it('shares the credentials that were made', async () => {
    const { control, shared } = make({ 'admin.setup': () => ({ done: true }) })
    await control.apply({ type: 'admin.setup', user: 'root', password: 'x' })
    assert.deepEqual(shared.map(({ admin }) => admin), [adminState])
  })

  it('leaves it to the relay to set a trace switch back', async () => {
    const commands: Command[] = []
    const { control, shared } = make({
      'trace.set': (command) => {
        commands.push(command)
        return {}
      },
    })
    const command = { type: 'trace.set', module: 'pool', enabled: false, ttlSeconds: 5 } as const
    await control.apply(command)
    assert.deepEqual(commands, [{ type: 'trace.set', module: 'pool', enabled: false }])
    assert.deepEqual(shared, [{ command }])
  })

  it('hands on what is about all processes', async () => {
    const { control, steps } = make({})
    await control.apply({ type: 'stop' })
    await control.apply({ type: 'logs.reopen' })
    assert.deepEqual(steps, ['ask stop', 'ask logs.reopen'])
  })
})

describe('a process that takes up a change', () => {
  it('carries it out by the follower of its type, and sets no switch back itself', async () => {
    const taken: unknown[] = []
    const followers = { 'trace.set': (change: Change) => void taken.push(change) } as unknown as Parameters<typeof follow>[0]
    await follow(followers, { command: { type: 'trace.set', module: 'pool', enabled: true, ttlSeconds: 5 } as Command<'trace.set'> })
    assert.deepEqual(taken, [{ command: { type: 'trace.set', module: 'pool', enabled: true } }])
  })

  it('rejects with what went wrong', async () => {
    const followers = {
      'routes.reload': () => {
        throw new Error('the file is gone')
      },
    } as unknown as Parameters<typeof follow>[0]
    await assert.rejects(follow(followers, { command: { type: 'routes.reload' } }), /^Error: the file is gone$/)
  })
})
