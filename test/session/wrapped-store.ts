import type { SessionStore } from '../../lib/session/store.ts'

/** A store whose calls go through a function. */
export function around(store: SessionStore, through: (call: string, work: () => unknown) => unknown): SessionStore {
  return new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...values: unknown[]) => through(String(name), () => Reflect.apply(member, target, values))
    },
  })
}
