/** The id of a cluster node, stored in its data directory. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from './clock.ts';
import { isCode, writeDurableFile } from './files.ts';
import { newId } from './ids.ts';

const FILE = 'node.json';

/** `nod-…`; created on first use. Throws an Error with a one-line message if the file is unreadable. */
export function nodeIdIn(dataDir: string, clock: Pick<Clock, 'now'>): string {
  const path = join(dataDir, FILE);
  try {
    const { node_id: id } = JSON.parse(readFileSync(path, 'utf8')) as { node_id?: unknown };
    if (typeof id === 'string' && /^nod-[0-9a-z]{26}$/.test(id)) return id;
    throw new Error('it has no node_id');
  } catch (error) {
    if (!isCode(error, 'ENOENT'))
      throw new Error(
        `${path} cannot be read (${(error as Error).message}): remove it to join as a new node`,
      );
  }
  const id = newId('nod', clock);
  writeDurableFile(path, `${JSON.stringify({ node_id: id })}\n`, 0o600);
  return id;
}
