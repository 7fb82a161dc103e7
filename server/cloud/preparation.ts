/** Installs missing programs on this host, in a separate process. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ABOUT_ENGINES } from '../drivers/engines/all-engines.ts';
import { unpackedPrograms } from '../drivers/managed-server/programs/unpacked-programs.ts';
import { type PreparingOutput, startPreparing } from '../drivers/preparation/preparer.ts';
import { TINY_FOLDER } from '../drivers/qemu/images/tiny-image.ts';

/**
 * Starts the preparation if a part is missing. `output` gets its lines. Resolves with the function that ends
 * it.
 */
export async function prepareMissing(output: PreparingOutput = 'stdout'): Promise<() => void> {
  const wanted = ABOUT_ENGINES.flatMap(({ programs }) => programs ?? []);
  const hasImage = existsSync(join(TINY_FOLDER, 'stamp'));
  if (hasImage && wanted.every(({ part }) => unpackedPrograms(part).length > 0)) return () => {};
  const there = await Promise.all(
    wanted.map(async ({ part, isOnHost }) => ((await isOnHost?.()) ? [`has-${part}`] : [])),
  );
  return startPreparing(there.flat(), output);
}
