/**
 * The values of `node:http` that are used; types are imported from there.
 *
 * Surprise: an `import` would read everything that the module exports, which on Node 24 loads `fetch` and its
 * WebSocket: 20 ms at the start.
 */
export const {
  createServer,
  IncomingMessage,
  METHODS,
  ServerResponse,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} = process.getBuiltinModule('node:http')
