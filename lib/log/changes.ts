/**
 * Reads from the general log what was changed, and who changed it: the lines about a request of the admin panel, which
 * name its address, and those about a signal. They are read from the files, so that they outlive the process.
 */
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { rotatedName } from './log-file.ts'

/** A line about a change. */
export interface ChangeLine {
  /** As the log has it: local time, `2026-11-20 11:27:00.123`. */
  readonly time: string
  readonly message: string
}

/** No more than this is read of all files together. */
const maxBytes = 2 ** 26

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
  let leftBytes = maxBytes
  for (const name of newestFirst) {
    if (found.length >= most || leftBytes <= 0) break
    const size = await sizeOf(join(folder, name))
    if (size === 0) continue
    const handle = await open(join(folder, name))
    const ofFile: ChangeLine[] = []
    for await (const line of handle.readLines({ start: Math.max(0, size - leftBytes), end: size - 1 })) {
      const change = changeOf(line)
      if (change !== undefined) ofFile.push(change)
    }
    found.push(...ofFile.slice(-most).reverse())
    leftBytes -= size
  }
  return found.slice(0, most)
}

/** The size of a file; 0 when it is not there, or is a pipe. */
async function sizeOf(path: string): Promise<number> {
  try {
    const facts = await stat(path)
    return facts.isFile() ? facts.size : 0
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0 // `node:fs` throws Errors.
    throw error
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
