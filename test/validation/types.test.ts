// The types that an application gets: `npm run typecheck` is what tests them.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fields as built } from '../../lib/validation/fields.ts'
import type { Context, FieldsBuilder, FormFile, StandardSchema, Validated, Values } from 'svc'

/** Whether two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const holds = <_ extends true>(): void => {}

// The builder makes what the types say: only its schemas have a type and no member for it.
const members: { readonly [Name in keyof FieldsBuilder]: FieldsBuilder[Name] } = built
const fields = built as unknown as FieldsBuilder

const note = fields({
  title: fields.text({ max: 80 }),
  note: fields.text().optional(),
  size: fields.integer().default(1),
  ratio: fields.number(),
  done: fields.boolean(),
  due: fields.date({ min: '2024-01-01' }).optional(),
  kind: fields.choice('s', 'm'),
  other: fields.choice(['a', 'b']).optional(),
  tags: fields.list(fields.text({ trim: false })),
  sizes: fields.list(fields.integer().optional()),
  address: fields.object({ city: fields.text(), zip: fields.text().optional() }).optional(),
  picture: fields.file({ types: ['image/*'] }),
  mail: fields.email(),
  site: fields.url(),
  password: fields.secret(),
})
interface Note {
  title: string
  note?: string | undefined
  size: number
  ratio: number
  done: boolean
  due?: string | undefined
  kind: 's' | 'm'
  other?: 'a' | 'b' | undefined
  tags: string[]
  sizes: number[]
  address?: { city: string; zip?: string | undefined } | undefined
  picture: FormFile
  mail: string
  site: string
  password: string
}
/** The same as a mapped type, which is what the compiler compares. */
type Plain<T> = { [Name in keyof T]: T[Name] }

describe('the types of validation', () => {
  it('are inferred from a schema', () => {
    holds<Same<Plain<Validated<typeof note>>, Plain<Note>>>()
    const use = async ({ validate }: Pick<Context, 'validate' | 'fields' | 'old' | 'errorsOf'>): Promise<void> => {
      const { title, tags, kind, note: text } = await validate(note, { form: 'note' })
      holds<Same<typeof title, string>>()
      holds<Same<typeof tags, string[]>>()
      holds<Same<typeof kind, 's' | 'm'>>()
      holds<Same<typeof text, string | undefined>>()
      // @ts-expect-error: the schema has no such field
      void (await validate(note)).body
      // @ts-expect-error: a definition is no schema
      await validate({ title: fields.text() })
      // @ts-expect-error: the bag has a name
      await validate(note, { form: 1 })
    }
    assert.equal(typeof use, 'function')
  })

  it('are those of a schema of another make', () => {
    type Made = StandardSchema & { readonly '~standard': { readonly types?: { readonly input: unknown; readonly output: { a: number } } } }
    holds<Same<Validated<Made>, { a: number }>>()
    holds<Same<Validated<StandardSchema>, unknown>>()
  })

  it('of values may be named', () => {
    const definition = { title: fields.text(), done: fields.boolean().optional() }
    holds<Same<Plain<Values<typeof definition>>, { title: string; done?: boolean | undefined }>>()
  })

  it('refuse what a definition must not have', () => {
    const wrong: readonly (() => unknown)[] = [
      // @ts-expect-error: a number
      () => fields.text({ max: '80' }),
      // @ts-expect-error: no such option
      () => fields.secret({ trim: false }),
      // @ts-expect-error: dates are texts
      () => fields.date({ min: 5 }),
      // @ts-expect-error: a pattern is a regular expression
      () => fields.text({ pattern: '^a$' }),
      // @ts-expect-error: a field
      () => fields.list('text'),
      // @ts-expect-error: a field
      () => fields({ title: 'text' }),
      // @ts-expect-error: one of the choices
      () => fields.choice('s', 'm').default('l'),
      // @ts-expect-error: a number
      () => fields.integer().default('1'),
      // @ts-expect-error: no such option
      () => fields.file({ maxKB: 1 }),
    ]
    for (const make of wrong) assert.throws(make, TypeError)
    assert.deepEqual(Object.keys(members).sort(), Object.keys(built).sort())
  })
})
