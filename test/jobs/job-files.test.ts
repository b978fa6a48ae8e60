import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { JobFiles } from '../../lib/jobs/job-files.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Reads a folder `jobs` with these files. */
function read(files: Readonly<Record<string, unknown>>): JobFiles {
  const folder = join(temporaryFolder(), 'jobs')
  mkdirSync(folder)
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return new JobFiles(folder, '/srv/app')
}

const job = (name: string, fields: object = {}) => ({ name, action: 'a.js', ...fields })
const placesOf = ({ jobs }: JobFiles) => jobs.map(({ record, file, index }) => [file, index, record.name])

describe('a folder of job files', () => {
  it('may be missing', () => {
    const { missing, jobs, problems, warnings } = new JobFiles(join(temporaryFolder(), 'none'), '/srv/app')
    assert.deepEqual([missing, jobs, problems, warnings], [true, [], [], []])
  })

  it('is read in name order, without other files', () => {
    const found = read({ 'b.json': [job('b'), job('c')], 'B.json': [job('B')], '10.json': [job('10')], '.x.json': '[', 'x.txt': '[', 'e.json': [] })
    assert.deepEqual(placesOf(found), [['jobs/10.json', 0, '10'], ['jobs/B.json', 0, 'B'], ['jobs/b.json', 0, 'b'], ['jobs/b.json', 1, 'c']])
    assert.deepEqual([found.missing, found.problems, found.warnings], [false, [], []])
  })

  it('may be unreadable', () => {
    const folder = join(temporaryFolder(), 'jobs')
    writeFileSync(folder, '')
    const { problems } = new JobFiles(folder, '/srv/app')
    assert.equal(problems.length, 1)
    assert.match(problems[0]?.error ?? '', /^the folder of job files cannot be read: ENOTDIR: .*: check paths\.jobs$/)
  })

  for (const $schema of ['', 'job-files.schema.json']) {
    it(`accepts an object with $schema ${JSON.stringify($schema)}`, () => {
      const found = read({ 'a.json': { $schema, jobs: [job('a')] }, 'b.json': { jobs: [job('b')] } })
      assert.deepEqual(placesOf(found), [['jobs/a.json', 0, 'a'], ['jobs/b.json', 0, 'b']])
      assert.deepEqual([found.problems, found.warnings], [[], []])
    })
  }

  const isArray = 'a job file is a JSON array of job records, or an object {"jobs": [...]}'
  const wrongFiles: readonly (readonly [content: unknown, error: string | RegExp])[] = [
    ['', 'it is empty: write [] for no jobs'],
    ['{}', isArray],
    ['null', isArray],
    ['"[]"', isArray],
    [{ jobs: {} }, isArray],
    [{ jobs: null, $schema: 'x' }, isArray],
    [{ routes: [] }, isArray],
    ['[{"name": "a",\n "name": "b"}]', /^it is not valid JSON at line 2, column 2: .*twice/],
    ['[1, 2', /^it is not valid JSON at line 1, column 6: /],
    [{ jobs: [], job: [] }, 'the file has an unknown member "job": did you mean "jobs"?'],
    [{ jobs: [], defaults: {} }, 'the file has an unknown member "defaults"'],
    [{ jobs: [], $schema: 5 }, '$schema must be a string: it is 5'],
    [{ jobs: [], $schema: null }, '$schema must be a string: it is null'],
  ]
  for (const [content, error] of wrongFiles) {
    it(`reports ${JSON.stringify(content)} in place of a file, and reads the others`, () => {
      const found = read({ 'a.json': content, 'b.json': [job('b')] })
      assert.deepEqual(placesOf(found), [['jobs/b.json', 0, 'b']])
      const [problem] = found.problems
      assert.equal(found.problems.length, 1)
      assert.deepEqual([problem?.file, problem?.index, problem?.name], ['jobs/a.json', null, ''])
      if (typeof error === 'string') assert.equal(problem?.error, error)
      else assert.match(problem?.error ?? '', error)
    })
  }

  it('keeps the records of a file that has an unknown member', () => {
    const found = read({ 'a.json': { jobs: [job('a')], note: '' } })
    assert.deepEqual([placesOf(found), found.problems.length], [[['jobs/a.json', 0, 'a']], 1])
  })

  it('refuses a name that another job has, in the same file and in another', () => {
    const found = read({ 'a.json': [job('x'), job('x')], 'b.json': { jobs: [job('y'), job('x')] } })
    assert.deepEqual(placesOf(found), [['jobs/a.json', 0, 'x'], ['jobs/b.json', 0, 'y']])
    const error = 'name "x" is taken by jobs/a.json, index 0: names are unique'
    assert.deepEqual(found.problems.map(({ file, index, name, error }) => ({ file, index, name, error })), [
      { file: 'jobs/a.json', index: 1, name: 'x', error },
      { file: 'jobs/b.json', index: 1, name: 'x', error },
    ])
  })

  it('does not take the name of a record with a problem', () => {
    const found = read({ 'a.json': [job('x', { retries: -1 }), job('x')] })
    assert.deepEqual(placesOf(found), [['jobs/a.json', 1, 'x']])
    assert.equal(found.problems.length, 1)
  })

  it('reports each problem and warning with its place', () => {
    const text = '[\n  {"name": "a", "action": "a.js",\n   "retries": -1,\n   "every": "x"},\n'
      + '  {"name": "b",\n   "action": "a.js", "nots": 1},\n  7,\n  {"action": "a.js"}\n]'
    const { problems, warnings } = read({ 'a.json': text })
    const shown = (list: JobFiles['problems']) => list.map(({ index, name, line, column, error }) => [index, name, line, column, error])
    const every = 'every must be a whole number and a unit (s, m, h or d), from 1s to 366d, such as 15m: it is "x"'
    assert.deepEqual(shown(problems), [
      [0, 'a', 3, 4, 'retries must be 0 to 100: it is -1'],
      [0, 'a', 4, 4, every],
      [2, '', 7, 3, 'a job is a JSON object'],
      [3, '', 8, 3, 'name is missing'],
    ])
    assert.deepEqual(shown(warnings), [[1, 'b', 6, 22, 'field "nots" is not known and is ignored']])
  })
})
