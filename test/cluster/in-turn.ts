/**
 * Several objects of one kind as one: each call goes to the next of them.
 * @param own members that are not forwarded
 */
export function inTurn<T extends object>(objects: readonly T[], own: Partial<T>): T {
  let calls = 0
  return new Proxy({} as T, {
    get: (_target, name) => {
      if (Object.hasOwn(own, name)) return Reflect.get(own, name) as unknown
      if (typeof Reflect.get(objects[0] as T, name) !== 'function') return undefined // There is one.
      return (...given: unknown[]) => {
        const object = objects[calls++ % objects.length] as T
        return Reflect.apply(Reflect.get(object, name) as () => unknown, object, given) as unknown
      }
    },
  })
}
