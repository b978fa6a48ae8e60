/**
 * Whether a service manager has started this process: then nobody sits before it who has just called it by hand.
 */
import type { Config } from '../config/table.ts'

/** What systemd, and what does as it does, sets for the processes that it starts (systemd.exec(5)). */
const variables = ['INVOCATION_ID', 'NOTIFY_SOCKET', 'LISTEN_FDS']

/** Whether the environment is that of a service. Call it before anything is taken out of the environment. */
export function isServiceManaged(env: NodeJS.ProcessEnv): boolean {
  return variables.some((name) => env[name] !== undefined)
}

/** The configuration for a service: the first setup asks for its token, unless the file says when it does. */
export function configOfService(config: Config): Config {
  return config['admin.setup_token'] === 'auto' ? { ...config, 'admin.setup_token': 'on' } : config
}
