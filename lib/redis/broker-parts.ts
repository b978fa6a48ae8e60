/** What the broker over Redis is made of, and what its channels and queues share. */
import type { Calls } from './calls.ts'
import type { Redis } from './client.ts'

export interface RedisBrokerOptions {
  /** It stays open when the broker is closed. */
  readonly redis: Redis
  /** What every key begins with, such as `svc:`. */
  readonly prefix: string
  /** What the name of every channel of PUBLISH begins with, another one for each database. */
  readonly place: string
  /** Told of events that were lost, and of each refusal of a server that is there, such as that its memory is full. */
  readonly onProblem: (message: string) => void
}

/** What channels and queues share. */
export interface BrokerParts extends RedisBrokerOptions {
  readonly calls: Calls
}
