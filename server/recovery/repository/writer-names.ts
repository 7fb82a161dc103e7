/** Names that identify the writers of a repository. */
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { WRITER } from '../store.ts';

interface WriterSecret {
  get(name: typeof WRITER): Promise<Buffer>;
}

/** Unchanged if the data directory is moved; a restored cloud has another name. */
export async function cloudName(secrets: WriterSecret): Promise<string> {
  return nameOf('cloudlet journal ', await secrets.get(WRITER));
}

/** A copy of a data directory has another one. */
export async function writerName(secrets: WriterSecret, directory: string): Promise<string> {
  const [secret, { dev, ino }] = await Promise.all([secrets.get(WRITER), stat(directory)]);
  return nameOf(`${secret.toString('hex')} ${dev} ${ino}`);
}

function nameOf(...parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex').slice(0, 32);
}
