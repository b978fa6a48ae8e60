import { it } from 'node:test'
import { assertJournalLines } from '../support/journal.ts'

it('the journal gets the lines of two processes with priorities; the file has them with times', (t) => assertJournalLines(t, 2))
