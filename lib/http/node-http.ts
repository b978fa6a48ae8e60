/**
 * The values used from `node:http`; types are imported from there.
 *
 * Surprise: an `import` would read every export of the module, which on Node 24 loads `fetch` and its WebSocket: 20 ms
 * at start-up.
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
