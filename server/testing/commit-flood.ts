/** What one account may do to the commits of another. */
import assert from 'node:assert/strict';
import type { Metadata } from '../metadata/metadata.ts';

const FLOOD = 2000;

/** Throws if a commit waits for more than half of those that another account sent before it. */
export async function assertShared(metadata: Metadata): Promise<void> {
  const commit = (owner: number, name: string) =>
    metadata.commit(
      [{ sql: 'INSERT INTO settings (name, value) VALUES (?, ?)', params: [name, 'x'] }],
      owner,
    );
  const flood = Array.from({ length: FLOOD }, (_, i) => commit(1, `flood ${i}`));
  const beside = commit(2, 'beside').then(() => 'beside');
  assert.equal(await Promise.race([beside, flood[FLOOD / 2]]), 'beside');
  await Promise.all(flood);
}
