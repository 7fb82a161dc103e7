/** Writes the file of a blob from bytes that are sealed already. */
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncFolder } from '../../platform/files.ts';
import type { RawCopy } from '../../storage/blobs/blobs.ts';
import { damaged } from '../blob-frames/blob-fault.ts';
import { blobPath } from '../blob-frames/blob-format.ts';

/**
 * Resolves when the file is durable; an existing one of that length is kept. It has another name
 * until then: an interrupted copy leaves a file that is not listed, and the next one replaces it.
 * Throws `data_corrupted` if the bytes have another length.
 */
export async function writeRawFile(root: string, { name, storedBytes, bytes }: RawCopy): Promise<void> {
  const path = join(root, blobPath(name));
  if ((await stat(path).catch(() => null))?.size === storedBytes) return;
  const part = `${path}.part`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(part, 'w', 0o600);
  try {
    let written = 0;
    for await (const piece of bytes) {
      await file.writeFile(piece);
      written += piece.length;
    }
    if (written !== storedBytes) throw damaged(`${written} bytes of ${storedBytes} of ${name}`);
    await file.sync();
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  await rename(part, path);
  syncFolder(dirname(path));
  syncFolder(root);
}
