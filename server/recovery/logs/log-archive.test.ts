import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { DirectoryTarget } from '../../drivers/recovery-directory/directory-target.ts';
import type { Changes } from '../../metadata/change.ts';
import { systemClock } from '../../platform/clock.ts';
import { Semaphore } from '../../platform/concurrency.ts';
import { Lease } from '../repository/lease.ts';
import { Repository } from '../repository/repository.ts';
import { createRepository } from '../repository/repository-head.ts';
import { LogArchive } from './log-archive.ts';

test('old logs are removed, but not while another Cloudlet writes to the target', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-logs-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const target = new DirectoryTarget(folder);
  const key = Buffer.alloc(32, 1);
  await createRepository(target, { key, recoveryKey: Buffer.alloc(32, 2) });
  const repository = new Repository(target, { key, repositoryId: '' });
  const leaseOf = (cloud: string) =>
    new Lease({ target, clock: systemClock, cloud: async () => cloud, host: cloud, silenceMs: 60_000 });
  const find = async () => repository;
  const archive = new LogArchive({
    find,
    lease: leaseOf('restored'),
    sweeping: new Semaphore(1),
    clock: systemClock,
    location: folder,
    changes: { run: async () => assert.fail() } as unknown as Changes,
    store: { damagedFiles: async () => [] },
    verdicts: { logs: async () => null, setLogs: () => assert.fail() },
  });
  const { logs } = repository;
  await logs.putPart('postgresql-1', 'a', { from: 0n, to: 1n, at: 1000, bytes: Buffer.from('x') });
  const left = async () => (await logs.lines('postgresql-1')).length;
  const old = { since: 5000, maxBytes: 10n, isGone: true };
  const holding = await leaseOf('live').hold();
  await assert.rejects(archive.trim(logs, 'postgresql-1', old), { code: 'target_in_use' });
  assert.equal(await left(), 1);
  await holding.release();
  await archive.trim(logs, 'postgresql-1', old);
  assert.equal(await left(), 0);
});
