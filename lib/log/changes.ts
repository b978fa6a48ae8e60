/**
 * Reads from the general log what was changed, and who changed it: the lines about a request of the admin panel, which
 * name its address, and those about a signal. They are read from the files, so that they outlive the process.
 */
import { constants } from 'node:fs'
import { open, readdir, type FileHandle } from 'node:fs/promises'
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
    const handle = await openIfThere(join(folder, name))
    if (handle === undefined) continue
    const stats = await handle.stat()
    const size = stats.isFile() ? stats.size : 0
    if (size === 0) {
      await handle.close()
      continue
    }
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

/** Opens a file for reading, without waiting for the other end of a pipe; undefined for a socket, too. */
async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException // `node:fs` throws Errors.
    if (code === 'ENOENT' || code === 'ENXIO') return undefined
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
