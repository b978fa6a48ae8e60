// The resolve hook of dist-target.js: resolves imports of lib/**/*.ts to the compiled dist/**/*.js instead.
// Surprise: Node before 22.15 runs it in a separate thread, so it gets no options and works from its own URL.
const source = new URL('../../lib/', import.meta.url).href
const compiled = new URL('../../dist/', import.meta.url).href

/** For threads: `module.register`. */
export async function resolve(specifier, context, next) {
  return toCompiled(await next(specifier, context))
}

/** Maps a resolved module of lib/ to dist/, keeping its query. */
export function toCompiled(resolved) {
  const [path, ...query] = resolved.url.split('?')
  if (!path.startsWith(source) || !path.endsWith('.ts')) return resolved
  const url = [`${compiled}${path.slice(source.length, -'.ts'.length)}.js`, ...query].join('?')
  return { ...resolved, url, format: 'module' }
}
