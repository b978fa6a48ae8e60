/**
 * Which of several processes this is: what the command line must know before it loads the rest.
 */

/** The environment variable by which a primary tells a worker its number. */
export const numberVariable = 'SVC_PROCESS'

/** Takes the number of this process, from 1, out of an environment. Undefined: no primary made it. */
export function takeProcessNumber(env: NodeJS.ProcessEnv): number | undefined {
  const number = env[numberVariable]
  delete env[numberVariable]
  return number === undefined ? undefined : Number(number)
}
