/** Makes a gate that opens once this many callers wait. */
export function createGate(count: number): () => Promise<void> {
  const waiting: (() => void)[] = []
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      if (waiting.length === count) for (const go of waiting) go()
    })
}
