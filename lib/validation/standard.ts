/**
 * Standard Schema, version 1 (https://standardschema.dev): the contract of schemas that other libraries make.
 */
import type { StandardSchema } from 'svc'
import { isObject } from '../base/object.ts'

/** Whether a value implements the contract. */
export function isStandard(schema: unknown): schema is StandardSchema {
  if (typeof schema !== 'object' && typeof schema !== 'function') return false
  const { '~standard': standard } = (schema ?? {}) as { readonly '~standard'?: unknown }
  return isObject(standard) && standard['version'] === 1 && typeof standard['validate'] === 'function'
}
