/**
 * Reads from the general log what was changed, and who changed it: the lines about a request of the admin panel, which
 * name its address, and those about a signal. They are read from the files, so that they outlive the process.
 */
import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { rotatedName } from './log-file.ts'

/** A line about a change. */
export interface ChangeLine {
  /** As the log has it: local time, `2026-11-20 11:27:00.123`. */
  readonly time: string
  readonly message: string
}

/** Each read takes so much of a file, from its end. */
const chunkBytes = 2 ** 18
/** No more than this is read of all files together. */
const maxBytes = 2 ** 26
/** Of a file without line ends, as none of this server is, no more is kept. */
const maxLineBytes = 2 ** 20

const textLine = /^\[([^\]]+)\] \[(?:INFO|WARN) *\] \[server\] (.*)$/
const byAddress = / by [\da-fA-F.:]*(?: |$)/
const bySignal = /^SIG[A-Z0-9]+: /

/**
 * Reads the last changes, the newest first.
 * @param folder `paths.log`, absolute
 * @param file `log.file`
 * @param most how many lines; fewer come when the last 64 MiB of the log have no more
 * @throws Error of the file system when a file is there and cannot be read
 */
export async function readChanges(folder: string, file: string, most: number): Promise<ChangeLine[]> {
  const rotated = (await readdir(folder)).filter((name) => rotatedName.test(name))
  const numberOf = (name: string): number => Number(rotatedName.exec(name)?.[1])
  const newestFirst = [file, ...rotated.sort((a, b) => numberOf(b) - numberOf(a))]
  const found: ChangeLine[] = []
  const budget = { bytes: maxBytes }
  for (const name of newestFirst) {
    for await (const line of linesFromEnd(join(folder, name), budget)) {
      const change = changeOf(line)
      if (change !== undefined) found.push(change)
      if (found.length === most) return found
    }
  }
  return found
}

/** The lines of a file, the last one first, until the budget is spent; none when it is not there, or is a pipe. */
async function* linesFromEnd(path: string, budget: { bytes: number }): AsyncGenerator<string> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (handle === undefined) return
  try {
    const stat = await handle.stat()
    let end = stat.isFile() ? stat.size : 0
    let rest = Buffer.alloc(0)
    while (end > 0 && budget.bytes > 0) {
      const start = Math.max(0, end - chunkBytes)
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(end - start), 0, end - start, start)
      const bytes = Buffer.concat([buffer.subarray(0, bytesRead), rest])
      const cut = start === 0 ? 0 : bytes.indexOf('\n') + 1 || bytes.length // The first line may begin before it.
      rest = cut > maxLineBytes ? Buffer.alloc(0) : bytes.subarray(0, cut)
      budget.bytes -= bytesRead
      yield* bytes.subarray(cut).toString().split('\n').reverse()
      end = start
    }
  } finally {
    await handle.close()
  }
}

function changeOf(line: string): ChangeLine | undefined {
  const { time, message } = line.startsWith('{') ? partsOfJson(line) : partsOfText(line)
  return byAddress.test(message) || bySignal.test(message) ? { time, message } : undefined
}

function partsOfText(line: string): ChangeLine {
  const [, time = '', message = ''] = textLine.exec(line) ?? []
  return { time, message }
}

function partsOfJson(line: string): ChangeLine {
  const nothing = { time: '', message: '' }
  if (!line.includes('"module":"server"')) return nothing
  try {
    const { time, module, message } = JSON.parse(line) as Record<string, unknown>
    return module === 'server' ? { time: String(time).replace('T', ' '), message: String(message) } : nothing
  } catch {
    return nothing // A line that is cut off.
  }
}
