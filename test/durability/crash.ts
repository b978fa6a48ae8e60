/**
 * `npm run kill -- crash [kills] [seed]`: kills a server with SIGKILL at random moments, 200 unless told otherwise, and looks each
 * time whether every file is whole, the next start works, and nothing that was acknowledged is gone.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CrashWorld, type KillKind } from './crash-world.ts'

const kills = Number(process.argv[2] ?? 200)
const seed = Number(process.argv[3] ?? 1)
const kinds: readonly KillKind[] = ['serve', 'setup', 'serve', 'passwd', 'serve']
const folder = mkdtempSync(join(tmpdir(), 'svc-crash-'))
const endings: (() => unknown)[] = []
try {
  const world = new CrashWorld({ after: (work) => endings.push(work) }, folder, seed)
  for (let count = 0; count < kills; count += 1) {
    await world.kill(kinds[count % kinds.length] as KillKind)
    await endAll()
  }
  await world.close()
  const { answered, unanswered, temporaryFiles, rotations } = world.seen
  console.log(`seed ${seed}, ${kills} kills: every file was whole, every start worked, nothing acknowledged was gone`)
  console.log(`${answered} changes acknowledged, ${unanswered} cut off, ${rotations} rotations`)
  console.log(`${temporaryFiles} temporary files left`)
} finally {
  await endAll()
  rmSync(folder, { recursive: true, force: true })
}

async function endAll(): Promise<void> {
  for (const end of endings.splice(0)) await end()
}
