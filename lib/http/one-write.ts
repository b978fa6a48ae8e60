/**
 * Ends a response with a short text in one write.
 *
 * Surprise: `end(text)` gives the socket two pieces, the text behind the header section and an empty one that tells
 * when they are gone, which costs a list, a cork and the slower system call for several pieces. With the text put to
 * the header section, which `writeHead` has just made, there is one piece. Where Node keeps that section is not
 * documented; a version that keeps it elsewhere gets the text the usual way.
 */
import type { ServerResponse } from 'node:http'
import type { SectionHolder } from './header-section.ts'

/** Longer texts are not worth the copy. */
const maxLength = 16 * 1024

/**
 * To be called right after the header section was made. An answer to HEAD gets no text.
 * @param text ASCII only: the header section is sent in Latin-1
 */
export function endWithText(response: ServerResponse, text: string): void {
  const holder = response as SectionHolder
  if (response.req.method === 'HEAD') {
    response.end()
    return
  }
  if (typeof holder._header !== 'string' || text.length > maxLength) {
    response.end(text)
    return
  }
  holder._header += text
  response.end()
}
