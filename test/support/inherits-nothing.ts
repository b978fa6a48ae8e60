/** Whether an object has no members but its own. */
export function inheritsNothing(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null
  return prototype === null || (Reflect.ownKeys(prototype).length === 0 && Object.getPrototypeOf(prototype) === null)
}
