/**
 * One cloud for all test files of this process that only need separate accounts. A file that calls this
 * shares its process with others (scripts/check-steps.ts). It must neither stop, restart nor fill the cloud,
 * nor assume that it is alone there: names of buckets are shared by all users of S3. It waits in `before`:
 * after a top-level `await`, only the first file of a process would register its tests.
 */
import { CloudProcess } from './cloud-process.ts';

let cloud: Promise<CloudProcess> | undefined;

/** Ends with this process, at the latest by leftovers.ts. */
export function sharedCloud(): Promise<CloudProcess> {
  cloud ??= start();
  return cloud;
}

async function start(): Promise<CloudProcess> {
  const started = await CloudProcess.start({ env: { CLOUDLET_RATE_REQUESTS: '1000000' } });
  // Its data is no longer needed, and a child that was waited for is counted in the time of the run.
  process.once('beforeExit', () => void started.crash());
  return started;
}
