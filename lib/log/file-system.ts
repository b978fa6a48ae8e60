/**
 * What the logs need of a file system. `node:fs` fits as it is; a test passes one whose disk is full.
 */
import * as fs from 'node:fs'

/** What is asked about a file: its size in bytes, which file it is, and whether it is a regular one. */
export interface FileFacts {
  readonly size: number
  readonly dev: number
  readonly ino: number
  isFile(): boolean
}

/** The calls of `node:fs` that the logs make, with its meanings and its errors. */
export interface FileSystem {
  openSync(path: string, flags: string, mode: number): number
  closeSync(fd: number): void
  fstatSync(fd: number): FileFacts
  statSync(path: string): FileFacts
  readSync(fd: number, into: Uint8Array, offset: number, length: number, position: number): number
  writeSync(fd: number, bytes: Uint8Array, offset: number, length: number): number
  existsSync(path: string): boolean
  renameSync(from: string, to: string): void
  unlinkSync(path: string): void
  readdirSync(path: string): string[]
  mkdirSync(path: string, options: { recursive: true; mode: number }): unknown
}

/** The file system of this machine. */
export const nodeFileSystem: FileSystem = fs
