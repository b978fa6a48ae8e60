import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const root = new URL('../../', import.meta.url)
/** The demo and the documents; not the configuration, which has keys. A name has no `..`, so none leads elsewhere. */
const readable = /^(?:routes|routes\/(?:board|errors|jobs|public)|docs|docs\/recipes)\/[\w-]+\.(?:css|html|js|json|md)$|^routes\/middleware\/board\.js$/

/** GET /code/*file : a file of the demo, or a document, as text. */
export default async ({ params: { file }, view, fail }) => {
  const text = readable.test(file) ? await readFile(fileURLToPath(new URL(file, root)), 'utf8').catch(ifMissing) : undefined
  return view('routes/board/code.html', { file, text: text ?? fail(404, 'no_such_file', 'There is no such file to read.') })
}

function ifMissing(error) {
  if (error.code !== 'ENOENT') throw error
}
