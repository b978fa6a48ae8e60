// Opens the database in a folder, prints `open` after a first write, and writes until it is killed.
import { Database } from '../../lib/data/database.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { addJob } from './support.ts'

const database = Database.open({ folder: process.argv[2] ?? '', sync: 'full', log: silentLogger })
let number = 0
const add = (): Promise<unknown> => database.write(() => addJob(database, `held ${(number += 1)}`))
await add()
process.stdout.write('open\n')
for (;;) await add()
