/** A place in an S3 bucket for the objects of each test cloud, if tests run with S3. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** `s3://KEY:SECRET@HOST:PORT/BUCKET?tls=off`; undefined: clouds store their objects as files. */
const BUCKET = process.env.TEST_BLOBS_BUCKET;

/** The setting of the cloud in this data directory. The creator of the bucket removes it. */
export function blobsEnv(dataDir: string): Readonly<Record<string, string>> {
  if (BUCKET === undefined || hasFiles(dataDir)) return {};
  const prefix = createHash('sha256').update(dataDir).digest('hex').slice(0, 24);
  const [bucket = '', query = ''] = BUCKET.split('?');
  return { CLOUDLET_BLOBS_URL: `${bucket.replace(/\/$/, '')}/${prefix}?${query}` };
}

/** A restored cloud has its objects as files, wherever they were. */
function hasFiles(dataDir: string): boolean {
  const folder = join(dataDir, 'blobs');
  return existsSync(folder) && readdirSync(folder).some((name) => /^[0-9a-z]{2}$/.test(name));
}
