/**
 * Pages that report on the running server: its errors by cause, its configuration, and its changes. With
 * `?format=json` they are JSON.
 */
import { settingsOf } from '../access/credential-store.ts'
import { isSecret, leavesOf } from '../config/objects.ts'
import { configKeys, configTable, type ConfigKey } from '../config/table.ts'
import { lastHourOf, partsOf } from '../log/error-groups.ts'
import { createTextClock } from '../log/line.ts'
import type { CoreContext } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'
import { asksForJson, panelPage, type PagePort } from './page.ts'
import { cut, search } from './paging.ts'
import type { AdminPort } from './admin-port.ts'

/** The part of the panel's port that the reports use. */
type ReportsPort = PagePort &
  Pick<AdminPort, 'audit' | 'changes' | 'clearErrors' | 'configSources' | 'credentials' | 'settings' | 'status'>

/** A key of the configuration as the page shows it. */
interface ConfigRow {
  readonly key: string
  readonly value: unknown
  /** `default`, `svc.json, line 12`, an option, a variable, a credential. */
  readonly source: string
  readonly meaning: string
  readonly warnings: readonly string[]
}

/** The source of a value whose text is not in a configuration file, whatever the name of its key: it is not shown. */
const reference = /^(?:env|credential|file) /

/** The source of a setting that only its schema has. */
const defaultOfSchema = 'default of the schema'

/** Makes the handlers, by the names of their rows in `table.ts`. */
export function createReports(port: ReportsPort) {
  return {
    /** The errors by cause, the most recently seen first. */
    async 'svc.errors'(ctx: CoreContext): Promise<Reply> {
      const groups = await port.errors()
      if (asksForJson(ctx)) return ctx.json(groups)
      const clock = createTextClock()
      const time = (ms: number): string => clock(ms).slice(0, 19)
      return panelPage(ctx, port, 'errors.html', {
        title: 'Errors',
        lastHour: lastHourOf(groups),
        groups: groups.map((group) => ({ ...group, lastHour: lastHourOf([group]), parts: partsOf(group.stack) })),
        time,
        curve: pathOf,
      })
    },

    /** Clears all errors. */
    async 'svc.errors.clear'(ctx: CoreContext): Promise<Reply> {
      const { length } = await port.errors()
      await port.clearErrors()
      port.audit(ctx, 'errors cleared', { detail: `${length} groups` })
      return ctx.json({ ok: true, cleared: length })
    },

    /** Every key of the configuration. */
    async 'svc.config'(ctx: CoreContext): Promise<Reply> {
      const { warnings } = await port.status()
      const all = configRows(port, warnings)
      const others = warnings.filter((text) => all.every((row) => !row.warnings.includes(text)))
      const keys = search(ctx, all, textOfRow)
      if (asksForJson(ctx)) return ctx.json({ keys, warnings: others })
      const { filter, count } = cut(ctx, keys, all.length, 'key')
      return panelPage(ctx, port, ctx.query.has('part') ? 'listings/config-results.html' : 'config.html', {
        title: 'Configuration',
        filterHint: 'key, value, meaning',
        filter,
        count,
        others,
        differing: keys.filter(differs),
        same: keys.filter((row) => !differs(row)),
        shown: textOfValue,
        usual,
      })
    },

    /** The last changes, newest first. */
    async 'svc.changes'(ctx: CoreContext): Promise<Reply> {
      const records = await port.changes()
      if (asksForJson(ctx)) return ctx.json(records)
      return panelPage(ctx, port, 'changes.html', { title: 'Changes', records, textOf })
    },
  }
}

function configRows(port: ReportsPort, warnings: readonly string[]): ConfigRow[] {
  const { user, password, secret, secondFactor } = port.credentials()
  const now = {
    ...port.config,
    'admin.user': user,
    'admin.password': password,
    'admin.secret': secret,
    ...(secondFactor && settingsOf(secondFactor)),
  }
  return configKeys.flatMap((key) => {
    if (key === 'settings' || key === 'setup') return settingRows(port, key)
    const value = now[key]
    const isSecret = 'secret' in configTable[key]
    return {
      key,
      value: isSecret ? hidden(value) : value,
      source: value === port.config[key] ? (port.configSources[key] ?? 'default') : 'saved while the server ran',
      meaning: meaningOf(key),
      warnings: warnings.filter((text) => names(text, key)),
    }
  })
}

/** Whether a value is not the default, or something is wrong with it. */
function differs({ key, value, source, warnings }: ConfigRow): boolean {
  if (warnings.length > 0) return true
  if (key in configTable) return textOfValue(value) !== usual(key)
  return source !== defaultOfSchema
}

/** A row for each value in use of the application or of the built-in middleware; for none, one for the key. */
function settingRows({ settings, configSources }: ReportsPort, root: 'settings' | 'setup'): ConfigRow[] {
  const absent = root === 'settings' ? defaultOfSchema : 'config.json'
  return leavesOf(root, settings()[root]).map((leaf) => {
    const { key, value } = leaf
    const source = configSources[key] ?? (key === root ? 'default' : absent)
    const isHidden = reference.test(source) || isSecret(leaf)
    const meaning = key === root ? meaningOf(key) : ''
    return { key, value: isHidden ? hidden(value) : value, source, meaning, warnings: [] }
  })
}

/** Shows only whether there is a value. */
function hidden(value: unknown): 'set' | 'empty' {
  const isEmpty = value === '' || value === null || (typeof value === 'object' && Object.keys(value).length === 0)
  return isEmpty ? 'empty' : 'set'
}

/** Without links. */
function meaningOf(key: ConfigKey): string {
  return configTable[key].meaning.replace(/\[([^[\]]*)\]\([^()]*\)/g, '$1')
}

/** Whether a text names a key: `app_key_previous` does not name `app_key`. */
function names(text: string, key: string): boolean {
  return text.split(/[^\w.]+/).some((word) => word === key || word === `${key}.`)
}

/** The default of a key as text; '' for a value in `settings` or `setup`. */
function usual(key: string): string {
  const row = configKeys.includes(key as ConfigKey) ? configTable[key as ConfigKey] : undefined
  if (row === undefined) return ''
  return 'secret' in row ? hidden(row.default) : textOfValue(row.default)
}

function textOfValue(value: unknown): string {
  const isObject = typeof value === 'object' && !Array.isArray(value)
  const text = Array.isArray(value) ? value.join(', ') : isObject ? JSON.stringify(value) : String(value)
  return text === '' ? '—' : text
}

/** The text that the filter searches. */
function textOfRow({ key, value, source, meaning }: ConfigRow): string {
  return `${key}\n${textOfValue(value)}\n${source}\n${meaning}`
}

/** The old or new value of a change, as text. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}

/** The path of a curve in a box of 59 by 20. */
function pathOf(minutes: readonly number[]): string {
  const most = Math.max(1, ...minutes)
  return `M${minutes.map((count, at) => `${at} ${(20 - (20 * count) / most).toFixed(1)}`).join('L')}`
}
