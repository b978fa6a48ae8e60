/** The number of this process among several. The command line reads it before loading anything else. */

/** The environment variable in which a primary passes a worker its number. */
export const numberVariable = 'SVC_PROCESS'

/** Removes the number from an environment and returns it, from 1; undefined when no primary started this process. */
export function takeProcessNumber(env: NodeJS.ProcessEnv): number | undefined {
  const number = env[numberVariable]
  delete env[numberVariable]
  return number === undefined ? undefined : Number(number)
}
