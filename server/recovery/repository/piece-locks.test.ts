/**
 * Locks of pieces that points of several months share: every point is protected for its days, with few
 * renewals.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { DirectoryTarget } from '../../drivers/recovery-directory/directory-target.ts';
import { FakeClock, readTime } from '../../platform/clock.ts';
import type { Component, Manifest } from '../points/manifest.ts';
import { DAY_MS } from '../schedule/schedule.ts';
import { lockPieces, pieceLockEnd } from './piece-locks.ts';
import { Repository } from './repository.ts';

const { signal } = new AbortController();
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-locks-'));
after(() => rmSync(folder, { recursive: true }));

async function* once(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}

for (const lockDays of [1, 7, 30]) {
  test(`each daily point of half a year is locked for ${lockDays} days from when it was made`, async () => {
    const clock = new FakeClock(readTime('now', '2026-11-26 03:00:00'));
    const repository = new Repository(new DirectoryTarget(folder), {
      key: Buffer.alloc(32),
      repositoryId: 'r',
    });
    /** When the lock of each piece ends. */
    const ends = new Map<string, number>();
    let renewals = 0;
    const locking = Object.create(repository, {
      lockDays: { value: lockDays },
      renewHead: { value: async () => void renewals++ },
      renewLock: {
        value: async (piece: string) => void ends.set(piece, pieceLockEnd(lockDays, clock.now())),
      },
      read: { value: repository.read.bind(repository) },
    }) as Repository;
    const store = async (text: string) => {
      const { pieces } = await repository.store(once(text), { isPacked: false, signal });
      // An existing piece is found without reading its lock.
      for (const piece of pieces) if (!ends.has(piece)) ends.set(piece, pieceLockEnd(lockDays, clock.now()));
      return pieces;
    };
    const shared = await store('shared by all points');
    let earlier: Manifest | undefined;
    const days = 180;
    for (let day = 0; day < days; day++) {
      const pieces = [...shared, ...(await store(`of day ${day}`))];
      const entry = { path: 'a', mode: 0o600, size_bytes: 1, pieces };
      const index = await store(`${JSON.stringify(entry)}\n`);
      const written = [{ name: 'objects', index }] as unknown as Component[];
      const row = { created_at: clock.now() };
      const deps = { repository: locking, clock, signal, written, earlier, row };
      const until = readTime('locked_until', await lockPieces(deps));
      for (const piece of [...pieces, ...index]) {
        const end = ends.get(piece) ?? 0;
        assert.ok(end >= clock.now() + lockDays * DAY_MS, `day ${day}: a piece is free too early`);
        assert.ok(end >= until, `day ${day}: the point says more than is true`);
      }
      earlier = { locked_until: new Date(until).toISOString() } as unknown as Manifest;
      clock.advance(DAY_MS);
    }
    const most = Math.ceil(days / Math.max(1, Math.floor(lockDays / 2))) + 1;
    assert.ok(renewals > 0 && renewals <= most, `${renewals} renewals, at most ${most}`);
  });
}
