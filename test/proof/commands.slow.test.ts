/** The digest of a running installation, and the commands `digest` and `verify`, by the launcher of a copy. */
import assert from 'node:assert/strict'
import { cpSync, existsSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { version } from '../../lib/base/version.ts'
import { codeDigest } from '../../lib/proof/code-digest.ts'
import { optionalRooms } from '../../lib/proof/tiers.ts'
import { applicationFolder } from '../support/application-folder.ts'
import { launch, optionsOfTarget, root, runLauncher } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const target = process.env['SVC_TEST_TARGET'] === 'dist' ? 'dist' : 'lib'

/** Copies the installation. Returns the folder. */
function copyInstallation(): string {
  const folder = temporaryFolder()
  const names = ['bin', 'lib', 'package.json', ...(target === 'dist' ? ['dist'] : [])]
  for (const name of names) cpSync(join(root, name), join(folder, name), { recursive: true, preserveTimestamps: true })
  return folder
}

function run(t: TestContext, folder: string, ...args: string[]): ReturnType<typeof runLauncher> {
  return runLauncher(t, args, { cwd: folder, launcher: join(folder, 'bin/svc.js'), nodeOptions: optionsOfTarget() })
}

describe('the code of an installation', () => {
  it('has one digest: of svc digest, the manifest, the first log line and the status', async (t) => {
    const folder = copyInstallation()
    const { digest, tier1 } = codeDigest()
    const shown = await run(t, folder, 'digest')
    assert.deepEqual([shown.status, shown.stderr], [0, ''])
    assert.match(shown.stdout, new RegExp(`^tier 1 +${tier1}$`, 'm'))
    assert.match(shown.stdout, new RegExp(`^all +${digest}$`, 'm'))
    const manifest = await run(t, folder, 'digest', '--manifest')
    assert.deepEqual([JSON.parse(manifest.stdout).all, JSON.parse(manifest.stdout).version], [digest, version])

    const cwd = applicationFolder({}, { 'app.env': 'dev', 'dev.watch': false })
    const server = launch(t, [], { cwd, launcher: join(folder, 'bin/svc.js'), nodeOptions: optionsOfTarget() })
    const url = await server.listening()
    assert.match(server.stdout().split('\n')[0] ?? '', new RegExp(`process \\d+, code ${digest}, configuration `))
    const status = (await request(`${url}/svc-status?format=json`)).json() as { code: object; warnings: string[] }
    assert.deepEqual(status.code, { version, digest, tier1 })
    assert.ok((await request(`${url}/svc-metrics`)).text.includes(`svc_build_info{version="${version}",digest="${digest}",tier1="${tier1}",node="`))
    assert.deepEqual(status.warnings.filter((warning) => warning.startsWith('the code')), [])
  })

  it('is verified by the least server too, which names the rooms that it has not', async (t) => {
    const folder = copyInstallation()
    const file = join(folder, 'manifest.json')
    writeFileSync(file, (await run(t, folder, 'digest', '--manifest')).stdout)
    assert.equal((await run(t, folder, 'verify', file)).status, 0)
    for (const room of optionalRooms) rmSync(join(folder, target, room), { recursive: true })
    const { status, stdout, stderr } = await run(t, folder, 'verify', file)
    assert.deepEqual([status, stderr], [0, ''])
    assert.equal(stdout.match(/^removed: /gm)?.length, optionalRooms.length)
    assert.equal((await run(t, folder, 'digest')).stdout.match(/ removed$/gm)?.length, optionalRooms.length)
  })

  it('is verified without being run, or compiled: a missing file of the server is named', async (t) => {
    const folder = copyInstallation()
    const file = join(folder, 'manifest.json')
    writeFileSync(file, (await run(t, folder, 'digest', '--manifest')).stdout)
    const missing = `${target}/core/pool.${target === 'dist' ? 'js' : 'ts'}`
    rmSync(join(folder, missing))
    const { status, stdout, stderr } = await run(t, folder, 'verify', file)
    assert.deepEqual([status, stderr], [1, ''])
    assert.ok(stdout.startsWith(`missing: ${missing}\n`), stdout)
    assert.equal(existsSync(join(folder, '.cached')), false)
  })

  it('that is partly a link starts with a warning, and is not that of its manifest', async (t) => {
    const folder = copyInstallation()
    const file = join(folder, 'manifest.json')
    writeFileSync(file, (await run(t, folder, 'digest', '--manifest')).stdout)
    const end = target === 'dist' ? 'js' : 'ts'
    const linked = `${target}/jobs/cron.${end}`
    const away = join(temporaryFolder(), `cron.${end}`)
    renameSync(join(folder, linked), away)
    symlinkSync(away, join(folder, linked))
    const verified = await run(t, folder, 'verify', file)
    assert.equal(verified.status, 1)
    assert.ok(verified.stdout.includes(`changed: ${linked} is a link to ${away}\n`), verified.stdout)
    const server = launch(t, [], { cwd: applicationFolder({}), launcher: join(folder, 'bin/svc.js'), nodeOptions: optionsOfTarget() })
    await server.listening()
    assert.ok(server.stdout().includes(`[WARN ] [config] the code of this server: ${linked} is a link to ${away}\n`), server.stdout())
  })

  it('is not verified with a missing manifest, and wrong usage is 2', async (t) => {
    const { status, stderr } = await run(t, root, 'verify', 'none.json')
    assert.equal(status, 1)
    assert.match(stderr, /^Cannot verify with none\.json: ENOENT/)
    assert.equal((await run(t, root, 'verify')).status, 2)
  })
})
