import type { BucketStore } from '../../lib/protection/buckets.ts'

/**
 * Takes tokens from a bucket, one after the other.
 * @returns how many were granted, and the time until the bucket is full, as of the last one
 */
export async function takeTokens(
  buckets: BucketStore,
  key: string,
  times: number,
): Promise<{ readonly granted: number; readonly fullInMs: number }> {
  let granted = 0
  let fullInMs = 0
  for (let turn = 0; turn < times; turn += 1) {
    const taken = await buckets.take(key)
    if (taken.isGranted) granted += 1
    fullInMs = taken.fullInMs
  }
  return { granted, fullInMs }
}
