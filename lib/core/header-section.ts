/**
 * Builds the header section of most responses faster than `writeHead`.
 *
 * `writeHead` checks each name and value again, and whether each name controls the connection: a tenth of the cost of a
 * plain response outside the kernel. These fields were checked when they were set (`header-list.ts`). The fields that
 * Node adds, date and keep-alive, are the same for all responses of one second: they are cut out of the first section,
 * which Node makes, and appended to the others.
 */
import type { ServerResponse } from 'node:http'
import { STATUS_CODES } from '../http/node-http.ts'
import { htmlType, jsonType, textType } from '../http/reply.ts'
import { sectionOf, setSection } from './node-internals.ts'

/** Longer bodies are not worth copying behind a section. */
const longestText = 16 * 1024

/** The sections of one server: all its connections have the same keep-alive time-out. */
export class HeaderSections {
  /** The text after the length digits in this second's sections; '' until known. */
  #end = ''
  #status = 0
  #statusMessage = ''
  #statusLine = ''
  #fields: readonly string[] | undefined = undefined
  #fieldsText = ''
  #type = ''
  #typeAndLength = 'Content-Length: '

  /**
   * Writes the header section, as `writeHead` does with `fields`, the type and the length.
   * @param status 200 to 599, neither 204 nor 304
   * @param fields name and value in turn; an array that is passed again must not have changed
   * @param plain whether all of `fields` are checked and none controls the connection
   * @param type '' for none
   * @param length bytes of the body
   * @throws TypeError for an invalid name or value
   */
  write(
    response: ServerResponse,
    status: number,
    fields: readonly string[],
    plain: boolean,
    type: string,
    length: number,
  ): void {
    const isOrdinary = plain && response.shouldKeepAlive && isChecked(type) && isUntouched(response)
    if (isOrdinary && this.#end !== '') {
      setSection(response, this.#startOf(status, fields, type) + length + this.#end)
      response.statusCode = status
      response.statusMessage = this.#statusMessage
      return
    }
    const all = fields.slice()
    if (type !== '') all.push('Content-Type', type)
    all.push('Content-Length', String(length))
    response.writeHead(status, all)
    if (isOrdinary) this.#learn(response, this.#startOf(status, fields, type) + length)
  }

  /** The section up to the length digits. */
  #startOf(status: number, fields: readonly string[], type: string): string {
    if (status !== this.#status) {
      this.#status = status
      this.#statusMessage = STATUS_CODES[status] ?? 'unknown'
      this.#statusLine = `HTTP/1.1 ${status} ${this.#statusMessage}\r\n`
    }
    if (type !== this.#type) {
      this.#type = type
      this.#typeAndLength = `${type === '' ? '' : `Content-Type: ${type}\r\n`}Content-Length: `
    }
    if (fields !== this.#fields) {
      this.#fields = fields
      this.#fieldsText = ''
      for (let at = 0; at < fields.length; at += 2) this.#fieldsText += `${fields[at]}: ${fields[at + 1]}\r\n`
    }
    return this.#statusLine + this.#fieldsText + this.#typeAndLength
  }

  /** Caches the end of a section made by Node until this second is over, if it begins as a section made here does. */
  #learn(response: ServerResponse, start: string): void {
    const section = sectionOf(response)
    if (section === undefined || !section.startsWith(start)) return
    const now = new Date()
    const end = section.slice(start.length)
    if (!end.startsWith(`\r\nDate: ${now.toUTCString()}\r\n`)) return
    this.#end = end
    setTimeout(() => {
      this.#end = ''
    }, 1000 - now.getMilliseconds()).unref()
  }
}

/**
 * Ends a response with a short text in one write. Call it right after the header section was written; a response to
 * HEAD gets no text. `end(text)` would pass the socket two pieces, the section with the text and an empty one that
 * reports when they are sent, which costs a list, a cork and the slower system call for several pieces.
 * @param text ASCII only, since the header section is sent in Latin-1
 */
export function endWithText(response: ServerResponse, text: string): void {
  if (response.req.method === 'HEAD') {
    response.end()
    return
  }
  const section = text.length > longestText ? undefined : sectionOf(response)
  if (section === undefined) {
    response.end(text)
    return
  }
  setSection(response, section + text)
  response.end()
}

/** Whether no fields and no status message were set on the response itself. */
function isUntouched(response: ServerResponse): boolean {
  return response.getHeaderNames().length === 0 && (response.statusMessage as string | undefined) === undefined
}

/** Whether a type needs no check of its characters. */
function isChecked(type: string): boolean {
  return type === jsonType || type === htmlType || type === textType || type === ''
}
