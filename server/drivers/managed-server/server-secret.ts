/** The secret of a server that we look after: all passwords of our own roles in it come from it. */
import { createHmac } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { writeDurableFile } from '../../platform/durable-file.ts';
import { randomSecret } from '../../platform/ids.ts';
import type { ServerPlaces } from './managed-server.ts';

const FILE = 'secret';
const BYTES = 32;

/** Makes it, unless it is there. */
export function makeServerSecret({ keeper }: Pick<ServerPlaces, 'keeper'>): void {
  const path = join(keeper, FILE);
  if (fs.existsSync(path)) return;
  writeDurableFile(path, randomSecret(BYTES), 0o600);
}

/** Throws when the server has none yet. */
export function readServerSecret({ keeper }: Pick<ServerPlaces, 'keeper'>): Buffer {
  return fs.readFileSync(join(keeper, FILE));
}

export function rolePassword(secret: Buffer, role: string): string {
  return createHmac('sha256', secret).update(`role ${role}`).digest('base64url');
}

/** Tells databases of this cloud from another one's, on a server that both use. Not secret. */
export function markOf(secret: Buffer): string {
  return `cloudlet ${createHmac('sha256', secret).update('mark').digest('hex').slice(0, 16)}`;
}
