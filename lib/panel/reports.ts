/**
 * Pages that report on the running server: its errors by cause, its configuration, and what was changed. With
 * `?format=json` they are JSON.
 */
import { configKeys, configTable, type ConfigKey } from '../config/table.ts'
import { createTextClock } from '../log/line.ts'
import type { CoreContext } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'
import { asksForJson, panelPage } from './page.ts'
import type { AdminPort } from './port.ts'

/** The part of the panel's port that the reports use. */
type ReportsPort = Pick<
  AdminPort,
  'audit' | 'changes' | 'clearErrors' | 'config' | 'configSources' | 'credentials' | 'errors' | 'pages' | 'status'
>

/** Makes the handlers, by the names of their rows in `table.ts`. */
export function createReports(port: ReportsPort) {
  return {
    /** The errors by cause, the one that was seen last first. */
    async 'svc.errors'(ctx: CoreContext): Promise<Reply> {
      const groups = await port.errors()
      if (asksForJson(ctx)) return ctx.json(groups)
      const clock = createTextClock()
      const time = (ms: number): string => clock(ms).slice(0, 19)
      return panelPage(ctx, port, 'errors.html', { title: 'Errors', groups, time, curve: pathOf })
    },

    /** Forgets all errors. */
    async 'svc.errors.clear'(ctx: CoreContext): Promise<Reply> {
      const { length } = await port.errors()
      await port.clearErrors()
      port.audit(ctx, 'errors cleared', { detail: `${length} groups` })
      return ctx.json({ ok: true, cleared: length })
    },

    /** Every key of the configuration. */
    async 'svc.config'(ctx: CoreContext): Promise<Reply> {
      const { warnings } = await port.status()
      const keys = configRows(port, warnings)
      const others = warnings.filter((text) => keys.every((row) => !row.warnings.includes(text)))
      if (asksForJson(ctx)) return ctx.json({ keys, warnings: others })
      return panelPage(ctx, port, 'config.html', { title: 'Configuration', keys, others, shown: textOfValue, usual })
    },

    /** The last changes, the newest first. */
    async 'svc.changes'(ctx: CoreContext): Promise<Reply> {
      const records = await port.changes()
      if (asksForJson(ctx)) return ctx.json(records)
      return panelPage(ctx, port, 'changes.html', { title: 'Changes', records, textOf })
    },
  }
}

/** The keys of the configuration as the page shows them. */
function configRows(port: ReportsPort, warnings: readonly string[]) {
  const { user, password, secret } = port.credentials()
  const now = { ...port.config, 'admin.user': user, 'admin.password': password, 'admin.secret': secret }
  return configKeys.map((key) => {
    const value = now[key]
    const isSecret = 'secret' in configTable[key]
    return {
      key,
      value: isSecret ? (value === '' || (value as readonly string[]).length === 0 ? 'empty' : 'set') : value,
      /** `default`, `svc.json, line 12`, an option, a variable, a credential. */
      source: value === port.config[key] ? (port.configSources[key] ?? 'default') : 'saved while the server ran',
      meaning: configTable[key].meaning.replace(/\[([^[\]]*)\]\([^()]*\)/g, '$1'), // Links lead into the documentation.
      warnings: warnings.filter((text) => names(text, key)),
    }
  })
}

/** Whether a text names a key: `app_key` is not named by `app_key_previous`. */
function names(text: string, key: string): boolean {
  return text.split(/[^\w.]+/).some((word) => word === key || word === `${key}.`)
}

/** The default of a key as text; '' for a secret. */
function usual(key: ConfigKey): string {
  return 'secret' in configTable[key] ? '' : textOfValue(configTable[key].default)
}

function textOfValue(value: unknown): string {
  const text = Array.isArray(value) ? value.join(', ') : String(value)
  return text === '' ? '—' : text
}

/** What was there before or is there now, as text. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}

/** The path of a curve in a box of 59 by 20. */
function pathOf(minutes: readonly number[]): string {
  const most = Math.max(1, ...minutes)
  return `M${minutes.map((count, at) => `${at} ${(20 - (20 * count) / most).toFixed(1)}`).join('L')}`
}
