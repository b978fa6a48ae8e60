// The alert rules and the dashboard of docs/deploy use metrics that a server has.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startSeveral } from '../cluster/several.ts'
import { startApplication } from '../support/application.ts'
import { makeCertificate } from '../support/certificate.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { dashboard, namesIn, usedMetrics } from './deploy-metrics.ts'

describe('docs/deploy', () => {
  it('has alert rules and a dashboard whose metrics exist', async (t) => {
    const several = await startSeveral(t, 2)
    const certificate = makeCertificate(temporaryFolder(), 'own')
    const { app } = await startApplication(t, {}, { 'app.env': 'dev', 'server.tls': certificate })
    const texts = [
      (await request(`${several.url}/svc-metrics`)).text,
      await (await app.request('https://localhost/svc-metrics')).text(),
    ]
    const withSharedEngine = 'svc_nodes_live' // admin.test.ts checks it.
    const known = new Set([...texts.flatMap(namesIn), withSharedEngine])
    const used = usedMetrics()
    assert.ok(used.size > 40)
    assert.deepEqual([...used].filter((name) => !known.has(name)), [])
  })

  it('has a dashboard that asks for its data source, job and instances', () => {
    assert.ok(dashboard.schemaVersion >= 36)
    assert.deepEqual(dashboard.templating.list.map(({ name, type }) => [name, type]), [
      ['datasource', 'datasource'], ['job', 'query'], ['instance', 'query'],
    ])
    for (const { type, datasource, targets = [] } of dashboard.panels) {
      assert.equal(datasource?.uid, type === 'row' ? undefined : '${datasource}')
      assert.equal(targets.length > 0, type !== 'row')
    }
  })
})
