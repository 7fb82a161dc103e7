/** The secret of a managed server: all passwords of our own roles derive from it. */
import { createHmac } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../../platform/errors.ts';
import { writeDurableFile } from '../../../platform/files.ts';
import { randomSecret } from '../../../platform/ids.ts';
import type { ServerFolders } from '../managed-server.ts';

const FILE = 'secret';
export const SECRET_BYTES = 32;

/** Creates it if missing. */
export function makeServerSecret({ keeper }: Pick<ServerFolders, 'keeper'>): void {
  const path = join(keeper, FILE);
  if (fs.existsSync(path)) return;
  writeDurableFile(path, randomSecret(SECRET_BYTES), 0o600);
}

/** Throws if the server has none yet, and `engine_unavailable` if the file is damaged. */
export function readServerSecret({ keeper }: Pick<ServerFolders, 'keeper'>): Buffer {
  const secret = fs.readFileSync(join(keeper, FILE));
  if (secret.length === SECRET_BYTES) return secret;
  throw new AppError('engine_unavailable', "The key of Cloudlet's roles on the database server is damaged", {
    hint: 'restore the file `secret` in its folder, below databases/ in the data directory, from a copy',
  });
}

export function rolePassword(secret: Buffer, role: string): string {
  return createHmac('sha256', secret).update(`role ${role}`).digest('base64url');
}

/** Distinguishes databases of this cloud on a shared server. Not secret. */
export function markOf(secret: Buffer): string {
  return `cloudlet ${createHmac('sha256', secret).update('mark').digest('hex').slice(0, 16)}`;
}
