import type { FieldChanges, SessionStore } from '../../lib/session/store.ts'

/** An id of the shape that sessions have. */
export function id(number: number): string {
  return `${number}`.padStart(43, 'A')
}

/** Fields of an object's members. */
export function fields(values: Readonly<Record<string, string>>): Map<string, string> {
  return new Map(Object.entries(values))
}

/** Changes: what is set, and what is removed. */
export function changes(set: Readonly<Record<string, string>>, removed: readonly string[] = []): FieldChanges {
  return { set: fields(set), removed: new Set(removed) }
}

/** The fields of a session as an object; undefined when there is no such session. */
export async function contents(
  store: SessionStore,
  id: string | undefined,
): Promise<Record<string, string> | undefined> {
  const found = await store.read(id ?? 'none')
  return found === undefined ? undefined : Object.fromEntries(found.fields)
}
