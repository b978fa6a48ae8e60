import type { FieldChanges, SessionStore } from '../../lib/session/store.ts'

/** Makes an id of the shape of session ids. */
export function id(number: number): string {
  return `${number}`.padStart(43, 'A')
}

/** Returns the fields of an object's members. */
export function fields(values: Readonly<Record<string, string>>): Map<string, string> {
  return new Map(Object.entries(values))
}

/** Returns changes: fields to set, and fields to remove. */
export function changes(set: Readonly<Record<string, string>>, removed: readonly string[] = []): FieldChanges {
  return { set: fields(set), removed: new Set(removed) }
}

/** Returns the fields of a session as an object; undefined if there is no such session. */
export async function contents(
  store: SessionStore,
  id: string | undefined,
): Promise<Record<string, string> | undefined> {
  const found = await store.read(id ?? 'none')
  return found === undefined ? undefined : Object.fromEntries(found.fields)
}
