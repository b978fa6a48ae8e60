/**
 * What a form whose input is wrong leaves for the page that shows it again, and where that page is.
 */
import { mayBeSecret } from '../base/secret-name.ts'
import { safeNext } from '../access/next-path.ts'
import type { Chain } from '../chain/compose.ts'
import type { CoreContext } from '../http/context.ts'
import type { InvalidInput } from '../http/errors.ts'
import type { Form } from '../http/form.ts'
import { refererIsHere } from '../http/origin.ts'
import type { Registry } from '../routing/registry.ts'
import type { Input } from './fields.ts'

/** The names that views and error pages have for what a form left. */
interface FormHelpers {
  /** What was typed into a field, or its default where nothing was left. */
  readonly old: (field: string, fallback?: unknown, form?: string) => unknown
  /** What is wrong with a field: texts, none where nothing is. */
  readonly errorsOf: (field: string, form?: string) => readonly string[]
}

/** The bag of a form that is not named. */
export const usualForm = 'form'

/** Makes the helpers. `left` gives what a form left, the same each time. */
export function formHelpers(left: (form: string) => Pick<InvalidInput, 'errors' | 'input'>): FormHelpers {
  return {
    old: (field, fallback, form = usualForm) => {
      const { input } = left(form)
      return Object.hasOwn(input, field) ? input[field] : fallback
    },
    errorsOf: (field, form = usualForm) => {
      const { errors } = left(form)
      return Object.hasOwn(errors, field) ? (errors[field] ?? []) : []
    },
  }
}

/**
 * The input of a form that may be shown again, by name: a text, or a list for several of one name and for lists. It
 * has no file and no secret. A checkbox that was not ticked is '', so that a default does not tick it.
 * @param inputs those of the schema, where it knows them
 * @param csrfField the name of the field that carries the CSRF token
 */
export function inputOf(form: Form, inputs: ReadonlyMap<string, Input>, csrfField: string): Record<string, unknown> {
  const input = Object.create(null) as Record<string, unknown>
  for (const name of form.keys()) {
    const known = inputs.get(withoutNumbers(name))
    if (name === csrfField || mayBeSecret(name) || known?.isSecret === true) continue
    const values = form.getAll(name)
    input[name] = values.length === 1 && known?.isList !== true ? values[0] : values
  }
  for (const [name, { isList, isCheckbox }] of inputs) {
    const isUnsent = !form.has(name) && !name.includes('*') && !mayBeSecret(name)
    if (isUnsent && (isList || isCheckbox)) input[name] = isList ? [] : ''
  }
  return input
}

/**
 * The path and query of the page that sent a form, by `Referer`: of this host, and a GET route of the application. So
 * nobody is led to another site, and nothing is changed by going there.
 * @returns undefined when there is no such page
 */
export function pageOfForm(ctx: CoreContext, registry: Pick<Registry<Chain>, 'find'>): string | undefined {
  const referer = ctx.header('referer') ?? ''
  if (!refererIsHere(ctx) || !URL.canParse(referer)) return undefined
  const { pathname, search } = new URL(referer)
  // A path without a GET route counts as one of other methods. System routes show no form of the application.
  const match = (method: string, path: string) => registry.find(method, path)?.route ?? ['POST']
  const path = safeNext(pathname, { match }, () => true)
  return path === undefined ? undefined : path + search
}

/** The name of an input with `*` for each number, as `Schema.inputs` has it. */
function withoutNumbers(name: string): string {
  return name.replace(/\.\d+(?=\.|$)/g, '.*')
}
