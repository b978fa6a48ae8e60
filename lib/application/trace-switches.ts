/** The trace switches of one process, as the desired state sets them. */
import type { Trace } from '../log/trace.ts'
import type { StateContent } from './desired-state.ts'

/** Sets every switch as a state says; one that it does not name, as the configuration says. */
export type SetSwitches = (entries: StateContent['trace']) => void

/** @param trace the switches, as the configuration sets them */
export function createTraceSwitches(trace: Trace): SetSwitches {
  const configured = Object.entries(trace.state())
  return (entries) => {
    for (const [module, on] of configured) trace.set(module, entries[module] ?? on)
  }
}
