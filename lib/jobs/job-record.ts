/**
 * Checks the records of job files. As with routes, all problems of a record are reported at once, and an unknown field
 * is a warning.
 */
import { readAction, readName, unknownField } from '../application/record.ts'
import { isObject } from '../base/object.ts'
import { readValue, type Row } from '../base/value.ts'
import { parseAction } from '../routing/action.ts'
import { cronSchedule, everySchedule, type Schedule } from './schedule.ts'

/** The fields of a record that have a fixed range, by name; the meanings are those of `docs/jobs.md`. */
export const jobTable = {
  retries: {
    kind: 'integer', min: 0, max: 100, default: 5,
    meaning: 'How often a failed job is tried again. Then it is dead.',
  },
  backoff_s: {
    kind: 'integer', min: 0, max: 3600, default: 10,
    meaning: 'Seconds before the second try. The delay doubles with each try, to at most an hour, and varies by up to '
      + 'a quarter: jobs that failed together do not run again together.',
  },
  timeout_s: {
    kind: 'integer', min: 1, max: 86_400, default: 60,
    meaning: 'Seconds that a try may take. Then `signal` aborts, and the try has failed.',
  },
  catch_up: {
    kind: 'boolean', default: true,
    meaning: 'With `every` or `cron`: whether a run that was missed while no server ran is made up for at the start.',
  },
  optional: {
    kind: 'boolean', default: false,
    meaning: 'If jobs cannot be stored and every record is optional, the server starts without them, with a WARN.',
  },
} as const satisfies Readonly<Record<string, Row>>

/** The record of a job, complete with its defaults. */
export interface JobRecord {
  readonly name: string
  readonly action: string
  readonly retries: number
  readonly backoff_s: number
  readonly timeout_s: number
  readonly catch_up: boolean
  readonly optional: boolean
  /** When the job runs by itself, if it does. */
  readonly schedule: Schedule | undefined
}

/** A valid record with its warnings, or the name and the problems of an invalid one, at least one. */
export type ReadJobRecord =
  | { readonly record: JobRecord; readonly warnings: readonly string[] }
  | { readonly name: string; readonly problems: readonly string[] }

const scheduleFields = { every: everySchedule, cron: cronSchedule } as const
const knownFields = ['name', 'action', 'every', 'cron', ...Object.keys(jobTable)]

/**
 * Checks the record of a job.
 * @param value anything that JSON can hold
 * @param root `paths.root`, absolute: actions are below it
 */
export function readJobRecord(value: unknown, root: string): ReadJobRecord {
  if (!isObject(value)) return { name: '', problems: ['a job is a JSON object'] }
  const problems: string[] = []
  const name = readName(value, problems)
  // The database would replace a lone surrogate.
  if (!name.isWellFormed()) problems.push(`name must be well-formed text: it is ${JSON.stringify(name)}`)
  const known = problems.length
  const action = readAction(value, root, problems)
  if (problems.length === known && parseAction(action).kind !== 'module') {
    problems.push(`action must be a module such as jobs/mail.js@send: it is ${JSON.stringify(action)}`)
  }
  const read: Record<string, unknown> = {}
  for (const [field, row] of Object.entries<Row>(jobTable)) {
    const reading = value[field] === undefined ? { value: row.default } : readValue(row, value[field])
    if ('problem' in reading) problems.push(`${field} ${reading.problem}`)
    else read[field] = reading.value
  }
  const schedule = readSchedule(value, problems)
  const warnings = Object.keys(value).flatMap((field) =>
    knownFields.includes(field) ? [] : [unknownField(field, knownFields)])
  if (value['catch_up'] !== undefined && schedule === undefined) {
    warnings.push('catch_up has no effect without every or cron')
  }
  if (problems.length > 0) return { name, problems }
  return { record: { ...read, name, action, schedule } as JobRecord, warnings } // Every row has been read.
}

function readSchedule(fields: Readonly<Record<string, unknown>>, problems: string[]): Schedule | undefined {
  const given = (['every', 'cron'] as const).filter((field) => fields[field] !== undefined)
  const [field] = given
  if (given.length > 1) problems.push('every and cron exclude each other: leave one of them out')
  if (field === undefined || given.length > 1) return undefined
  const text = fields[field]
  try {
    if (typeof text !== 'string') throw new RangeError(`must be a string: it is ${JSON.stringify(text)}`)
    return scheduleFields[field](text)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    problems.push(`${field} ${error.message}`)
    return undefined
  }
}
