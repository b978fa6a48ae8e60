// The resolve hook of dist-target.js: gives whoever imports lib/**/*.ts the compiled dist/**/*.js instead.
// Surprise: Node before 22.15 runs it in a thread of its own, so it can be told nothing and works from its own URL.
const source = new URL('../../lib/', import.meta.url).href
const compiled = new URL('../../dist/', import.meta.url).href

/** For threads: `module.register`. */
export async function resolve(specifier, context, next) {
  return toCompiled(await next(specifier, context))
}

/** A resolved module of lib/ as that of dist/; what a query says of it stays. */
export function toCompiled(resolved) {
  const [path, ...query] = resolved.url.split('?')
  if (!path.startsWith(source) || !path.endsWith('.ts')) return resolved
  const url = [`${compiled}${path.slice(source.length, -'.ts'.length)}.js`, ...query].join('?')
  return { ...resolved, url, format: 'module' }
}
