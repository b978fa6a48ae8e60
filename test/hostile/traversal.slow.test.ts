import { it } from 'node:test'
import { checkUpwards } from './traversal-support.ts'

it('static files cannot be escaped upwards in any spelling, to any of the files', (t) => checkUpwards(t, 4))
