import { it } from 'node:test'
import { checkUpwards } from './traversal-support.ts'

it('static files are not left upwards, however that is written, to any of the files', (t) => checkUpwards(t, 4))
