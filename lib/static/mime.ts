/**
 * The Content-Type of a file, by the extension of its name.
 *
 * Text is always declared as UTF-8. JSON has no charset (RFC 8259 section 11), and XML names its own.
 */

/** The type of a file whose extension is not in the table. */
const unknownType = 'application/octet-stream'

const utf8 = '; charset=utf-8'

const types: ReadonlyMap<string, string> = new Map([
  ['aac', 'audio/aac'],
  ['apng', 'image/apng'],
  ['atom', 'application/atom+xml'],
  ['avif', 'image/avif'],
  ['bmp', 'image/bmp'],
  ['cjs', `text/javascript${utf8}`],
  ['css', `text/css${utf8}`],
  ['csv', `text/csv${utf8}`],
  ['doc', 'application/msword'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['epub', 'application/epub+zip'],
  ['flac', 'audio/flac'],
  ['geojson', 'application/geo+json'],
  ['gif', 'image/gif'],
  ['gz', 'application/gzip'],
  ['htm', `text/html${utf8}`],
  ['html', `text/html${utf8}`],
  ['ico', 'image/x-icon'],
  ['ics', `text/calendar${utf8}`],
  ['jpeg', 'image/jpeg'],
  ['jpg', 'image/jpeg'],
  ['js', `text/javascript${utf8}`],
  ['json', 'application/json'],
  ['jsonld', 'application/ld+json'],
  ['jxl', 'image/jxl'],
  ['m4a', 'audio/mp4'],
  ['m4v', 'video/mp4'],
  ['map', 'application/json'],
  ['md', `text/markdown${utf8}`],
  ['mjs', `text/javascript${utf8}`],
  ['mov', 'video/quicktime'],
  ['mp3', 'audio/mpeg'],
  ['mp4', 'video/mp4'],
  ['odp', 'application/vnd.oasis.opendocument.presentation'],
  ['ods', 'application/vnd.oasis.opendocument.spreadsheet'],
  ['odt', 'application/vnd.oasis.opendocument.text'],
  ['oga', 'audio/ogg'],
  ['ogg', 'audio/ogg'],
  ['ogv', 'video/ogg'],
  ['opus', 'audio/ogg'],
  ['otf', 'font/otf'],
  ['pdf', 'application/pdf'],
  ['png', 'image/png'],
  ['ppt', 'application/vnd.ms-powerpoint'],
  ['pptx', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
  ['rss', 'application/rss+xml'],
  ['rtf', 'application/rtf'],
  ['svg', 'image/svg+xml'],
  ['tar', 'application/x-tar'],
  ['tif', 'image/tiff'],
  ['tiff', 'image/tiff'],
  ['ttf', 'font/ttf'],
  ['txt', `text/plain${utf8}`],
  ['vcf', `text/vcard${utf8}`],
  ['vtt', `text/vtt${utf8}`],
  ['wasm', 'application/wasm'],
  ['wav', 'audio/wav'],
  ['weba', 'audio/webm'],
  ['webm', 'video/webm'],
  ['webmanifest', 'application/manifest+json'],
  ['webp', 'image/webp'],
  ['woff', 'font/woff'],
  ['woff2', 'font/woff2'],
  ['xhtml', 'application/xhtml+xml'],
  ['xls', 'application/vnd.ms-excel'],
  ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['xml', 'application/xml'],
  ['zip', 'application/zip'],
])

/** The Content-Type of a file, by the part of its name after the last dot, in any case. */
export function contentTypeOf(fileName: string): string {
  const dot = fileName.lastIndexOf('.')
  if (dot <= fileName.lastIndexOf('/')) return unknownType
  return types.get(fileName.slice(dot + 1).toLowerCase()) ?? unknownType
}
