/** Prepares beside the server what this host still lacks. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findPrograms } from '../drivers/engines/postgresql/postgresql-programs.ts';
import { unpackedPrograms } from '../drivers/managed-server/unpacked-programs.ts';
import { startPreparing } from '../drivers/preparation/preparer.ts';
import { TINY_FOLDER } from '../drivers/qemu/tiny-image.ts';

/**
 * Starts the preparation if a part is missing. `output` gets its lines. Resolves with the function that ends
 * it.
 */
export async function prepareMissing(output: 'stdout' | 'stderr' = 'stdout'): Promise<() => void> {
  const has = (name: 'postgresql' | 'mariadb') => unpackedPrograms(name).length > 0;
  const hasImage = existsSync(join(TINY_FOLDER, 'stamp'));
  if (hasImage && has('postgresql') && has('mariadb')) return () => {};
  const isOnHost = 'version' in (await findPrograms(null));
  return startPreparing(isOnHost ? ['has-postgresql'] : [], output);
}
