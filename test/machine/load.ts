/** Sends requests to its argument on 20 kept connections until its standard input ends, then prints what became of them. */
import { startClient } from '../support/keep-alive-client.ts'

const [, , url = ''] = process.argv
const client = startClient({ url, connections: 20 })
process.stdin.resume().on('end', async () => {
  const { answered, failed, slowestMs } = await client.stop()
  process.stdout.write(JSON.stringify({ answered, failed, slowestMs }))
})
