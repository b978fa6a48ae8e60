/** JSON that has maps, sets, Infinity and undefined as well, for what tests send from process to process. */
export function pack(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => {
    if (item instanceof Map) return { '@': 'map', items: [...item] }
    if (item instanceof Set) return { '@': 'set', items: [...item] }
    if (item === Infinity) return { '@': 'infinity' }
    return item === undefined ? { '@': 'undefined' } : item
  })
}

/** Restores a packed value. */
export function unpack(text: string): unknown {
  return JSON.parse(text, (_key, item: unknown) => {
    if (typeof item !== 'object' || item === null) return item
    const { '@': kind, items } = item as { '@'?: string; items: [unknown, unknown][] }
    if (kind === 'map') return new Map(items)
    if (kind === 'set') return new Set(items)
    if (kind === 'infinity') return Infinity
    return kind === 'undefined' ? undefined : item
  })
}
