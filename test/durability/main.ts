/**
 * `npm run kill -- NAME [OPTIONS]`: kills or restarts servers at random moments, and checks that nothing acknowledged is
 * gone. NAME is `crash` (files), `data` (jobs and durable events), `restarts` (clients) or `chaos` (three nodes).
 */
const runs: Readonly<Record<string, () => Promise<unknown>>> = {
  crash: () => import('./crash.ts'),
  data: () => import('./data.ts'),
  restarts: () => import('./restarts.ts'),
  chaos: () => import('../chaos/chaos.ts'),
}

const [name = ''] = process.argv.splice(2, 1)
const run = Object.hasOwn(runs, name) ? runs[name] : undefined
if (run === undefined) {
  console.error(`Usage: npm run kill -- NAME [OPTIONS], where NAME is one of ${Object.keys(runs).join(', ')}`)
  process.exitCode = 2
} else await run()
