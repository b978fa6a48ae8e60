/** A real disk that can simulate being full, taking few bytes at a time, and refusing calls. */
import * as fs from 'node:fs'
import type { FileSystem } from '../../lib/log/log-file.ts'

const nodeFileSystem: FileSystem = fs

/** A file system of {@link createFaultyDisk}, with its controls. */
export interface FaultyDisk extends FileSystem {
  /** The bytes that may still be written; at 0, a write fails with ENOSPC. */
  room: number
  /** The most bytes that one call takes. */
  bytesPerWrite: number
  /** The calls that fail, by name, and the code of their error. */
  readonly refused: Map<keyof FileSystem, string>
  /** The number of attempted writes. */
  writes: number
}

/** Returns a file system that works until its controls are changed. */
export function createFaultyDisk(): FaultyDisk {
  const fail = (code: string, message: string): never => {
    throw Object.assign(new Error(`${code}: ${message}`), { code })
  }
  const check = (call: keyof FileSystem): void => {
    const code = disk.refused.get(call)
    if (code !== undefined) fail(code, `refused by the test, ${call}`)
  }
  const disk: FaultyDisk = {
    ...nodeFileSystem,
    room: Number.POSITIVE_INFINITY,
    bytesPerWrite: Number.POSITIVE_INFINITY,
    refused: new Map(),
    writes: 0,
    openSync: (path, flags, mode) => {
      check('openSync')
      return nodeFileSystem.openSync(path, flags, mode)
    },
    closeSync: (fd) => {
      nodeFileSystem.closeSync(fd)
      check('closeSync')
    },
    fstatSync: (fd) => {
      check('fstatSync')
      return nodeFileSystem.fstatSync(fd)
    },
    statSync: (path) => {
      check('statSync')
      return nodeFileSystem.statSync(path)
    },
    renameSync: (from, to) => {
      check('renameSync')
      nodeFileSystem.renameSync(from, to)
    },
    unlinkSync: (path) => {
      check('unlinkSync')
      nodeFileSystem.unlinkSync(path)
    },
    writeSync: (fd, bytes, offset, length) => {
      disk.writes += 1
      check('writeSync')
      const taken = Math.min(length, disk.room, disk.bytesPerWrite)
      if (disk.room === 0) fail('ENOSPC', 'no space left on device')
      const count = nodeFileSystem.writeSync(fd, bytes, offset, taken)
      disk.room -= count
      return count
    },
  }
  return disk
}
