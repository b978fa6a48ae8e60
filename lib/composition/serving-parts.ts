/** The parts of an application that serve its requests, put together for `createServing`. */
import { resolve } from 'node:path'
import { createPanelFilter } from '../access/allow-list.ts'
import { createErrorPages } from '../application/error-pages.ts'
import type { Maintenance } from '../application/maintenance.ts'
import type { Worker } from '../cluster/joining.ts'
import type { LoadedConfig } from '../config/load.ts'
import { createFileMover } from '../files/move-file.ts'
import { createClientAddress } from '../http/client-address.ts'
import { createContextClass } from '../http/features.ts'
import { isLoopbackHost } from '../http/host.ts'
import { createPrefixes } from '../http/prefix.ts'
import { explainJson } from '../json/json-map.ts'
import { logFeature } from '../log/feature.ts'
import type { Logs } from '../log/logs.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { isUnmodified } from '../static/conditional.ts'
import { fileFeature } from '../static/file-reply.ts'
import { routingFeature } from '../routing/feature.ts'
import { viewFeature } from '../views/feature.ts'
import type { ApplicationParts } from './application-parts.ts'
import type { ServingParts } from './serving.ts'

interface Sources extends Pick<ServingParts, 'staticFiles' | 'certificates' | 'warnsOfNode' | 'running'> {
  readonly loaded: LoadedConfig
  readonly built: ApplicationParts
  readonly logs: Logs
  readonly metrics: Metrics
  readonly worker: Worker | undefined
  readonly maintenance: Maintenance
}

/** Creates the parts, including the context class with the members of every feature. */
export function createServingParts({ loaded, built, logs, metrics, worker, ...rest }: Sources): ServingParts {
  const { config, folder } = loaded
  const { registry, views, features, builtIn: { protection } } = built
  const inFolder = (key: 'paths.root' | 'paths.errors' | 'paths.temp'): string => resolve(folder, config[key])
  const { 'server.trusted_proxies': proxies, 'server.prefix': prefix } = config
  const clientAddress = createClientAddress(proxies)
  const trusts = proxies.length === 0 ? undefined : clientAddress.trusts
  const ofFiles = fileFeature({
    root: inFolder('paths.root'),
    onFailure: (file, thrown) => logs.module('response').warn(`${file} could not be sent completely`, { thrown }),
  })
  const { ContextClass, viewScope } = createContextClass(
    [logFeature(logs.general), routingFeature(registry), viewFeature(views, () => viewScope), ofFiles, ...features],
    {
      isUnmodified,
      misuse: built.reports.misuse,
      bodyLimitBytes: config['server.body_limit_kb'] * 1024,
      temporaryFolder: inFolder('paths.temp'),
      moveFile: createFileMover(inFolder('paths.root')),
      clientAddress,
      prefixes: createPrefixes(prefix, trusts, logs.module('server').warn),
      explainJson,
    },
  )
  const { maintenance } = rest
  const errorPages = createErrorPages(inFolder('paths.errors'), inFolder('paths.root'), views, logs.module('error'))
  const { 'app.env': environment, 'server.allowed_hosts': allowedHosts } = config
  return {
    ...rest,
    // Only where no other site can have sent the request (DNS rebinding). A disallowed Host is refused before this.
    showsDetails: ({ host }) => environment === 'dev' && (allowedHosts.length > 0 || isLoopbackHost(host)),
    pageForError: (ctx, error, detail) =>
      error === maintenance.refusal ? maintenance.page(ctx) : errorPages(ctx, error, detail),
    registry,
    ContextClass,
    headersWithoutRoute: protection.headersWithoutRoute,
    preflight: protection.preflight,
    hides: createPanelFilter(config['admin.allow']),
    accessLog: logs.access,
    metrics,
    log: logs.module,
    addressLimit: worker?.addressLimit,
    isTrusted: clientAddress.trusts,
  }
}
