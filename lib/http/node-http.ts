/**
 * What is used of `node:http` while the program runs; types are imported from there as ever.
 *
 * Surprise: it is not imported. An import reads all that a module exports, and with `node:http` that loads `fetch` and
 * its WebSocket on Node 24, for 20 ms that no server needs at its start.
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
