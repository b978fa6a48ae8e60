/**
 * The header section of an answer, for most answers without having all of it made anew.
 *
 * `writeHead` looks at each name and value once more, and at each name whether it steers the connection, which is a
 * tenth of what a plain answer takes outside of the kernel. Here come fields that were looked at when they were set
 * (`header-list.ts`). What Node puts behind them, the date and how long the connection stays, is the same for all
 * answers of a second: it is cut out of the first one's section, which Node has made, and put behind the others.
 *
 * Surprise: where Node keeps a section is not documented. A version that keeps it elsewhere makes all of them itself.
 */
import type { ServerResponse } from 'node:http'
import { STATUS_CODES } from './node-http.ts'
import { htmlType, jsonType, textType } from './reply.ts'

/** Where Node keeps the section that `writeHead` has made: the text as it is sent, in Latin-1. */
export interface SectionHolder {
  _header?: unknown
}

/** The sections of one server: how long its connections stay is the same for all of them. */
export class HeaderSections {
  /** What stands behind the digits of the length in this second's sections, to their end; '' until one is known. */
  #end = ''
  #status = 0
  #statusMessage = ''
  #statusLine = ''
  #type = ''
  #typeAndLength = 'Content-Length: '

  /**
   * Gives a response its header section, as `writeHead` does with `fields`, the type and the length.
   * @param status 200 to 599, neither 204 nor 304
   * @param fields name and value in turn
   * @param plain whether all of `fields` are checked, and none steers the connection
   * @param type '' for none
   * @param length that of the body in bytes
   * @throws TypeError for a name or a value that no field may have
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
      const holder = response as SectionHolder
      holder._header = this.#startOf(status, fields, type) + length + this.#end
      response.statusCode = status
      response.statusMessage = this.#statusMessage
      return
    }
    const all = fields.slice()
    if (type !== '') all.push('Content-Type', type)
    all.push('Content-Length', String(length))
    response.writeHead(status, all)
    if (isOrdinary) this.#learn(response, `Content-Length: ${length}`)
  }

  /** All up to the digits of the length. */
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
    let start = this.#statusLine
    for (let at = 0; at < fields.length; at += 2) start += `${fields[at]}: ${fields[at + 1]}\r\n`
    return start + this.#typeAndLength
  }

  /** Keeps the end of a section that Node has made, where its date is the present one, until this second is over. */
  #learn(response: ServerResponse, lengthField: string): void {
    const { _header: section } = response as SectionHolder
    if (typeof section !== 'string') return
    const now = new Date()
    const end = section.slice(section.lastIndexOf(lengthField) + lengthField.length)
    if (!end.startsWith(`\r\nDate: ${now.toUTCString()}\r\n`)) return
    this.#end = end
    setTimeout(() => {
      this.#end = ''
    }, 1000 - now.getMilliseconds()).unref()
  }
}

/** Whether nobody has set fields or a reason of the response itself. */
function isUntouched(response: ServerResponse): boolean {
  return response.getHeaderNames().length === 0 && (response.statusMessage as string | undefined) === undefined
}

/** Whether a type needs no look at its characters. */
function isChecked(type: string): boolean {
  return type === jsonType || type === htmlType || type === textType || type === ''
}
