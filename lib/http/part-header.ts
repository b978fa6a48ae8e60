/**
 * Parses the header of one part of a multipart form (RFC 7578 section 4).
 *
 * Browsers send the UTF-8 bytes of a file name, with `%22`, `%0D` and `%0A` for a quote and a line end (HTML standard,
 * multipart/form-data encoding). RFC 7578 section 4.2 forbids `filename*` (RFC 8187), but clients send it, some without
 * `filename`: it is used if it is valid UTF-8, else ignored.
 */
import { isToken } from '../base/token.ts'
import { charsetOf, decodeText, type Charset } from './charset.ts'
import { HttpError } from './errors.ts'
import { parseParameters, type ValueWithParameters } from './parameters.ts'

/** The header of a part. */
export interface PartHeader {
  readonly name: string
  /** The last path component without control characters; `undefined` for a field. */
  readonly filename: string | undefined
  /** The media type in lower case without parameters; `application/octet-stream` if missing or malformed. */
  readonly type: string
  /** The encoding of a field's value. */
  readonly charset: Charset
}

const controls = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g

/**
 * Parses a header.
 * @param header the header lines, without the empty line at the end
 * @throws HttpError 400 `bad_form` if it is malformed, not form-data, without a name, or transfer-encoded; 415
 * `unsupported_media_type` for a field in an unsupported charset
 */
export function parsePartHeader(header: Buffer): PartHeader {
  const text = decodeText(header, 'utf-8')
  if (text === undefined) throw badPart('its header is not UTF-8')
  const headers = readLines(text)

  const transfer = headers.get('content-transfer-encoding')?.trim().toLowerCase() ?? 'binary'
  if (!['binary', '8bit', '7bit'].includes(transfer)) {
    throw badPart('its Content-Transfer-Encoding must be binary, 8bit or 7bit (RFC 7578 section 4.7)')
  }
  const disposition = parseParameters(headers.get('content-disposition') ?? '')
  if (disposition?.value !== 'form-data') throw badPart('it has no well-formed Content-Disposition: form-data')
  const name = disposition.parameters.get('name')
  if (name === undefined) throw badPart('its Content-Disposition has no name')
  const { parameters } = disposition
  const filename = extendedName(parameters.get('filename*')) ?? plainName(parameters.get('filename'))

  const type = readType(headers.get('content-type'))
  const charset = filename === undefined ? charsetOf(type?.parameters.get('charset')) : 'utf-8'
  return {
    name: unescapeBrowser(name),
    filename: filename === undefined ? undefined : lastComponent(filename),
    type: type?.value ?? 'application/octet-stream',
    charset,
  }
}

function readLines(text: string): Map<string, string> {
  const headers = new Map<string, string>()
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon)).toLowerCase()
    const value = line.slice(colon + 1).replace(/^[ \t]+/, '')
    if (!isToken(name) || /[\0\r\n]/.test(value)) throw badPart('a line of its header is malformed')
    if (headers.has(name)) throw badPart(`its header has ${name} twice`)
    headers.set(name, value)
  }
  return headers
}

function readType(text: string | undefined): ValueWithParameters | undefined {
  const type = text === undefined ? undefined : parseParameters(text)
  return type?.value.includes('/') === true ? type : undefined
}

function plainName(filename: string | undefined): string | undefined {
  return filename === undefined ? undefined : unescapeBrowser(filename)
}

/** Decodes `UTF-8'language'percent-encoded` (RFC 8187, section 3.2); undefined for any other charset or encoding. */
function extendedName(value: string | undefined): string | undefined {
  const encoded = value === undefined ? undefined : /^utf-8'[^']*'(.*)$/is.exec(value)?.[1]
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded)
  } catch {
    return undefined // It is not UTF-8.
  }
}

function unescapeBrowser(text: string): string {
  return text.replaceAll('%22', '"').replace(/%0d/gi, '\r').replace(/%0a/gi, '\n')
}

function lastComponent(filename: string): string {
  const clean = filename.replace(controls, '')
  const last = clean.slice(Math.max(clean.lastIndexOf('/'), clean.lastIndexOf('\\')) + 1)
  return last === '.' || last === '..' ? '' : last
}

function badPart(reason: string): HttpError {
  return new HttpError(400, 'bad_form', `Cannot read a part of the multipart form: ${reason}`)
}
