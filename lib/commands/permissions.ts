/**
 * The command `permissions`: prints a systemd drop-in that runs the server under Node's permission model, with the
 * flags that this Node and this configuration need.
 *
 * Surprise: Node compares names. A folder is granted as `FOLDER/*`, since one that is missing when the process starts
 * would be granted as a file; a path with links is granted both as written and as resolved. If the server is started
 * through a link to its folder, such as `/opt/svc/current`, that link may lead to another version later: the drop-in
 * names the link, and grants the folder that contains the versions.
 */
import { statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { foldersOf, sessionPathOf, settingsOf } from '../composition/written-folders.ts'
import { localFileOf, type LoadedConfig } from '../config/load.ts'
import { referencesIn } from '../config/settings.ts'
import { processCount } from '../config/together.ts'
import { realPathOf, relativeTo } from '../files/paths.ts'
import type { CommandOptions } from '../cli/options.ts'
import { configOfService } from '../systemd/service.ts'
import { savedNames } from '../process/permission.ts'
import { exitStatus, isFileError, textOfFileError } from '../process/process.ts'
import { numbersOf } from '../process/safe-node.ts'
import { calledFolder, codeName, serverFolder } from './server-folder.ts'

/** Folders, files and names with `*`, all absolute. */
interface Grants {
  readonly folders: readonly string[]
  readonly files: readonly string[]
}

const firstMajor = 24
/** See processDescriptors and pathOfOpen. */
const ofProcess = ['/proc/self/limits', '/proc/self/fd', '/proc/self/fd/*'].map((path) => `--allow-fs-read=${path}`)
const optionOf = { 'server.host': '--host', 'server.port': '--port', 'app.env': '--env' } as const
/**
 * Without the right to start programs, the server cannot notify systemd: see createNotifier. A single process that can
 * give the right up notifies it once, when it is ready, and cannot feed a watchdog.
 */
const withoutNotifications = 'Type=exec\nNotifyAccess=none\nWatchdogSec=0\n'
const withOneNotification = 'WatchdogSec=0\n'
/** The first versions with `process.permission.drop`, by major version. */
const dropVersions = ['24.20.0', '26.3.0']

/**
 * Prints the drop-in.
 * @param file the configuration file
 * @param load reads it; rejects with ConfigError
 * @param write additional folders that the application writes to
 * @returns the exit status: 0, 1 when Node does not support it, 2 when `write` names a file, 78 wrong configuration
 */
export async function permissions(
  file: string,
  load: () => Promise<LoadedConfig>,
  { overrides, write }: Pick<CommandOptions, 'overrides'> & { readonly write: readonly string[] },
): Promise<number> {
  const { node } = process.versions
  if (Number.parseInt(node) < firstMajor) {
    return refuse(`Node ${node} has no permission model that svc can run under: use Node ${firstMajor} or later`)
  }
  const notFolder = write.find(isFile)
  if (notFolder !== undefined) {
    return refuse(`--write must name a folder: ${JSON.stringify(notFolder)} is not one`, exitStatus.usage)
  }
  try {
    const loaded = await load()
    const path = join(realPathOf(dirname(file)), basename(file))
    const written = writeGrants(loaded, path, write)
    const read = readGrants(loaded, path, written)
    const several = processCount(loaded.config) > 1
    const flags = [...flagsOf('--allow-fs-read', read), ...ofProcess, ...flagsOf('--allow-fs-write', written)]
    const starred = flags.find((flag) => flag.slice(0, -1).includes('*'))
    if (starred !== undefined) {
      return refuse(`Node takes the * in ${JSON.stringify(starred)} for any text: rename that folder`)
    }
    const drops = canDrop(node)
    if (several || drops) flags.push('--allow-child-process')
    if (drops && configOfService(loaded.config)['server.hang_trace_s'] !== 0) flags.push('--allow-worker')
    if (process.allowedNodeEnvironmentFlags.has('--allow-net')) flags.push('--allow-net')
    const options = Object.entries(overrides).flatMap(([key, value]) => [optionOf[key as keyof typeof optionOf], value])
    const args = [join(calledFolder(), 'bin', 'svc.js'), 'start', '--config', path, ...options].map(String)
    // systemd replaces %d with the folder of the unit's credentials.
    const words = [process.execPath, '--permission', ...flags].map(quoted).concat('--allow-fs-read=%d/*')
    const start = [...words, ...args.map(quoted)].join(' ')
    const ofOne = drops ? withOneNotification : withoutNotifications
    process.stdout.write(`[Service]\nExecStart=\nExecStart=${start}\n${several ? '' : ofOne}`)
    return exitStatus.ok
  } catch (error) {
    if (!isFileError(error)) throw error
    return refuse(textOfFileError(error).trimEnd(), exitStatus.config)
  }
}

/** Returns the server's code; if a link beside it was used, all versions in that folder, but never the root. */
function serverGrants(): Grants {
  const called = calledFolder()
  const versions = dirname(serverFolder)
  const isBeside = called !== serverFolder && realPathOf(dirname(called)) === versions && dirname(versions) !== versions
  if (isBeside) return { folders: [versions, dirname(called)], files: [] }
  return {
    folders: [join(called, 'bin'), join(called, codeName)],
    files: [join(called, 'package.json')],
  }
}

/** Whether a process of this version can give up rights. */
function canDrop(version: string): boolean {
  const [major = 0, minor = 0] = numbersOf(version)
  return dropVersions.map(numbersOf).some(([line = 0, from = 0]) => line === major && minor >= from) || major > 26
}

function refuse(message: string, status: number = exitStatus.failed): number {
  process.stderr.write(`${message}\n`)
  return status
}

function isFile(path: string): boolean {
  try {
    return !statSync(path).isDirectory()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOTDIR' // The folder may not exist yet, or be inaccessible.
  }
}

/** Returns what the server writes, and `more`; of the configuration only the file to save and its temporary files. */
function writeGrants(loaded: LoadedConfig, file: string, more: readonly string[]): Grants {
  const configured = [...foldersOf(loaded).map(({ path }) => path), resolve(loaded.folder, loaded.config['paths.data'])]
  const path = sessionPathOf(loaded)
  const sessions = path === undefined ? [] : [path]
  return {
    folders: [...configured, ...sessions, ...more.map((name) => resolve(name))],
    files: savedNames(file, loaded.config),
  }
}

/** Returns what the server reads: itself, the application, the configuration, keys, certificates and written files. */
function readGrants(loaded: LoadedConfig, file: string, written: Grants): Grants {
  const { config, folder } = loaded
  const keys = ['paths.root', 'paths.routes', 'paths.jobs', 'paths.middleware', 'paths.errors', 'paths.public'] as const
  const folders = keys.flatMap((key) => (config[key] === '' ? [] : [resolve(folder, config[key])]))
  const references = referencesIn(config.settings).filter(({ kind }) => kind === 'file')
  const ofSettings = references.map(({ name }) => String(name))
  const ofTls = [config['server.tls.cert'], config['server.tls.key']]
  const named = [...ofTls, config['paths.maintenance'], keyFileOf(loaded), ...ofSettings]
  const { CREDENTIALS_DIRECTORY: credentials = '' } = process.env
  const server = serverGrants()
  return {
    folders: [
      ...[...server.folders, ...folders, ...written.folders],
      ...(credentials === '' ? [] : [credentials]),
    ],
    files: [
      ...[...server.files, file, localFileOf(file), ...written.files],
      ...named.flatMap((name) => (name === '' ? [] : [resolve(folder, name)])),
    ],
  }
}

function keyFileOf(loaded: LoadedConfig): string {
  const { key_file: file } = settingsOf(loaded, 'jwt')
  return typeof file === 'string' ? file : ''
}

/** Returns a flag for each folder and file, except those inside another of the folders. */
function flagsOf(flag: string, { folders, files }: Grants): string[] {
  const names = (paths: readonly string[]): string[] => paths.flatMap((path) => [resolve(path), realPathOf(path)])
  const all = [...new Set(names(folders))]
  const isOutside = (path: string): boolean => all.every((folder) => relativeTo(folder, path) === undefined)
  const granted = [...all.filter(isOutside).map((folder) => join(folder, '*')), ...names(files).filter(isOutside)]
  return [...new Set(granted)].map((path) => `${flag}=${path}`)
}

/** Quotes a word for a command line of systemd, by systemd.service(5) and systemd.syntax(7). */
function quoted(word: string): string {
  const text = word.replaceAll('%', '%%').replaceAll('$', '$$$$')
  if (/^[\w./:=@,+*%$-]+$/.test(text)) return text
  const escaped = text.replaceAll(/["\\]/g, '\\$&')
  const hex = (sign: string): string => `\\x${sign.charCodeAt(0).toString(16).padStart(2, '0')}`
  return `"${escaped.replaceAll(/[\u0000-\u001f\u007f]/g, hex)}"`
}
