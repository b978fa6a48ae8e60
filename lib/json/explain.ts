/**
 * Says in one line where a text stops being JSON.
 */
import { JsonError, mapJson, placeOf } from './json-map.ts'

/** Explains why `JSON.parse` refuses a text: `line 2, column 5: ...`. */
export function explainJson(text: string): string {
  try {
    mapJson(text)
    return 'it is not valid JSON'
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const { line, column } = placeOf(text, error.offset)
    return `line ${line}, column ${column}: ${error.message}`
  }
}
