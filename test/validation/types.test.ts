// The types that an application gets, tested by `npm run typecheck`.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fields as built } from '../../lib/validation/fields.ts'
import type { Context, FieldsBuilder, FormFile, StandardSchema, Validated, Values } from 'svc'

/** Whether two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const holds = <_ extends true>(): void => {}

// At run time the schemas have no member for their type.
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
/** The interface that https://standardschema.dev tells libraries to copy, version 1. */
interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardSchemaV1.Result<Output> | Promise<StandardSchemaV1.Result<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}
declare namespace StandardSchemaV1 {
  type Result<Output> = { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly Issue[] }
  interface Issue {
    readonly message: string
    readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
  }
  type InferInput<Schema extends StandardSchemaV1> = NonNullable<Schema['~standard']['types']>['input']
  type InferOutput<Schema extends StandardSchemaV1> = NonNullable<Schema['~standard']['types']>['output']
}
/** The same as a mapped type, which the compiler compares. */
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
      // @ts-expect-error: a definition is not a schema
      await validate({ title: fields.text() })
      // @ts-expect-error: the bag has a name
      await validate(note, { form: 1 })
    }
    assert.equal(typeof use, 'function')
  })

  it('of a query and of errors that an action finds', () => {
    const use = async ({ validate, invalid }: Context, find: (email: string) => { id: number } | undefined): Promise<number> => {
      const { page } = await validate(fields({ page: fields.integer().default(1) }), { from: 'query' })
      holds<Same<typeof page, number>>()
      // @ts-expect-error: no such place
      await validate(note, { from: 'cookies' })
      // @ts-expect-error: texts
      if (page > 9) invalid({ email: 5 })
      const { id } = find('a') ?? invalid({ email: ['Unknown'] }, { form: 'login' })
      return id
    }
    assert.equal(typeof use, 'function')
  })

  it('are inferred from a third-party schema', () => {
    type Made = StandardSchema & { readonly '~standard': { readonly types?: { readonly input: unknown; readonly output: { a: number } } } }
    holds<Same<Validated<Made>, { a: number }>>()
    holds<Same<Validated<StandardSchema>, unknown>>()
  })

  it('are those of a Standard Schema', () => {
    holds<Same<StandardSchemaV1.InferOutput<typeof note>, Validated<typeof note>>>()
    const takes = <Schema extends StandardSchemaV1>(schema: Schema): Schema => schema
    const small = takes(fields({ title: fields.text(), done: fields.boolean().optional() }))
    holds<Same<Plain<StandardSchemaV1.InferOutput<typeof small>>, { title: string; done?: boolean | undefined }>>()
    holds<Same<StandardSchemaV1.InferInput<typeof small>, StandardSchemaV1.InferOutput<typeof small>>>()
  })

  it('are inferred by check', () => {
    const result = note.check({})
    if (result.ok) holds<Same<typeof result.value, Validated<typeof note>>>()
    else holds<Same<typeof result.errors, { readonly [path: string]: readonly string[] }>>()
    // @ts-expect-error: it may have failed
    void result.value
  })

  it('of values can be named', () => {
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
