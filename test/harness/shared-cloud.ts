/**
 * One cloud for all test files of this process that need no more than accounts of their own. A file that
 * calls this shares its process with others (scripts/check-steps.ts). It must neither stop, restart nor fill
 * the cloud, nor count on being alone there: names of buckets are the same for everybody who uses S3. It
 * waits in `before`: of what follows an `await` at the top, only the first file of a process has the tests.
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
  // Nobody needs its data any more, and a child that was waited for is counted in the time of the run.
  process.once('beforeExit', () => void started.crash());
  return started;
}
