/**
 * Reads the job files of a folder: every `*.json` directly in it. A file is an array of job records, or an object with
 * `jobs`, and perhaps `$schema`, which is for editors.
 */
import { RecordFiles, unknownMember } from '../application/record-files.ts'
import { isObject } from '../base/object.ts'
import { quote } from '../routing/pattern.ts'
import { readJobRecord, type JobRecord } from './job-record.ts'

/** A valid record and its place: the name of its file, and its index in the file's array, from 0. */
export interface PlacedJob {
  readonly record: JobRecord
  readonly file: string
  readonly index: number
}

/** The content of a folder of job files. A missing folder is no problem: there are then no jobs. */
export class JobFiles extends RecordFiles {
  readonly jobs: PlacedJob[] = []

  /**
   * Reads the folder.
   * @param folder `paths.jobs`, absolute
   * @param root `paths.root`, absolute
   */
  constructor(folder: string, root: string) {
    super(folder, 'jobs')
    for (const file of this.list()) this.#readFile(file, root)
  }

  #readFile(file: string, root: string): void {
    const value = this.read(file)
    if (value === undefined) return
    if (Array.isArray(value)) return this.#readRecords(file, value, root)
    if (!isObject(value) || !Array.isArray(value['jobs'])) {
      return this.refuseFile(file, 'a job file is a JSON array of job records, or an object {"jobs": [...]}')
    }
    const { jobs, $schema: schema = '', ...others } = value
    for (const name of Object.keys(others)) this.refuseFile(file, unknownMember('the file', name, ['jobs', '$schema']))
    if (typeof schema !== 'string') this.refuseFile(file, `$schema must be a string: it is ${quote(schema)}`)
    this.#readRecords(file, jobs as readonly unknown[], root)
  }

  #readRecords(file: string, values: readonly unknown[], root: string): void {
    for (const [index, value] of values.entries()) {
      const read = readJobRecord(value, root)
      if (!('record' in read)) {
        for (const error of read.problems) this.note(this.problems, { file, index, name: read.name, error })
        continue
      }
      const { record, warnings } = read
      if (!this.takeName(file, index, record.name)) continue
      this.jobs.push({ record, file, index })
      for (const error of warnings) this.note(this.warnings, { file, index, name: record.name, error })
    }
  }
}
