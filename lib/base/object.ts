/** Whether a value is an object with members by name: not null, no list, no function. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Makes an object that inherits no members, for names that come from outside. `Object.create(null)` does the same, but
 * V8 keeps its members in a hash table, which is two to ten times as slow.
 */
export function bareObject<Value>(): Record<string, Value> {
  return new Bare()
}

/** The prototype of such objects, which has no members and no prototype. */
export const barePrototype: object = Object.freeze(Object.create(null))

const Bare = function () {} as unknown as new <Value>() => Record<string, Value> // The compiler knows no other way.
Bare.prototype = barePrototype
