/** The guard over servers whose sizes the test sets; faults/database-servers-disk-full uses real ones. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { DiskLevel } from '../../../platform/host/disk-space.ts';
import { DiskGuard, type Guarded } from './disk-guard.ts';
import type { Waits } from './held-back.ts';

const MIB = 2 ** 20;

class FakeServer implements Guarded {
  isUp = true;
  /** The result of a measurement. */
  size: number;
  bytes = 0;
  /** If set, it hangs on request. */
  hangs = false;
  readonly limitBytes = 2 ** 40;
  waits: Waits | null = null;
  isHeld = false;
  /** Whether permissions were revoked instead. */
  isWithoutGrowth = false;
  ends = 0;
  readonly engine = {
    hold: async (isHeld: boolean) => {
      this.isHeld = isHeld;
    },
  };

  constructor(size: number) {
    this.size = size;
  }

  async measureDisk(): Promise<void> {
    this.bytes = this.size;
  }

  async holdBack(waits: Waits | null): Promise<void> {
    if (this.hangs) await new Promise(() => {});
    this.waits = waits;
  }

  async endFor(): Promise<void> {
    this.ends++;
  }

  get said(): string {
    const waits = this.waits === null ? 'grows' : this.waits.isGrower ? 'is held back' : 'waits';
    return this.isHeld ? `${waits}, reads` : waits;
  }
}

/** A guard over these servers; `level` is that of the disk, and look() shows the state of each server. */
function guardOver(t: TestContext, servers: FakeServer[]) {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-guard-'));
  const disk: { level: DiskLevel } = { level: 'ample' };
  const guard = new DiskGuard({ folder, level: () => disk.level, servers: () => servers });
  t.after(() => {
    guard.close();
    rmSync(folder, { recursive: true });
  });
  /** Every 20th check measures. */
  const look = async () => {
    for (let checks = 0; checks < 21; checks++) await guard.check();
    return servers.map(({ said }) => said);
  };
  return { disk, guard, look };
}

test('who grows while the disk is scarce is held back, the others wait when it is low, all go on with space', async (t) => {
  const [large, grower, quiet] = [
    new FakeServer(900 * MIB),
    new FakeServer(5 * MIB),
    new FakeServer(5 * MIB),
  ];
  const servers = [large, grower, quiet];
  const { disk, guard, look } = guardOver(t, servers);
  assert.deepEqual(await look(), ['grows', 'grows', 'grows']);
  disk.level = 'scarce';
  await guard.check();
  // A server that has just started does not count as one that grew to its size.
  const late = new FakeServer(700 * MIB);
  servers.push(late);
  quiet.size += 20 * MIB;
  assert.deepEqual(await look(), ['grows', 'grows', 'grows', 'grows']);
  grower.size += 40 * MIB;
  assert.deepEqual(await look(), ['grows', 'is held back', 'grows', 'grows']);
  assert.equal(grower.ends, 0);
  grower.size += 40 * MIB;
  await look();
  assert.equal(grower.ends, 1, 'it found a way around it');
  disk.level = 'low';
  assert.deepEqual(await look(), ['waits, reads', 'is held back', 'waits, reads', 'waits, reads']);
  disk.level = 'out';
  assert.ok((await look()).every((said) => said.endsWith(', reads')));
  disk.level = 'ample';
  assert.deepEqual(await look(), ['grows', 'grows', 'grows', 'grows']);
});

test('a server without rights to grow need not be held, and one that takes what is left ends', async (t) => {
  const [byRights, held] = [new FakeServer(5 * MIB), new FakeServer(5 * MIB)];
  const { disk, guard, look } = guardOver(t, [byRights, held]);
  await look();
  byRights.isWithoutGrowth = true;
  disk.level = 'low';
  assert.deepEqual(await look(), ['waits', 'waits, reads']);
  byRights.size += 20 * MIB;
  await look();
  disk.level = 'out';
  assert.deepEqual(await look(), ['waits', 'waits, reads']);
  assert.equal(byRights.ends, 0, 'it grew before');
  byRights.size += 20 * MIB;
  await look();
  assert.deepEqual([byRights.ends, held.ends], [1, 0]);
  await look();
  assert.equal(byRights.ends, 1, 'it may free space afterwards');
  disk.level = 'ample';
  await guard.check();
  assert.deepEqual(await look(), ['grows', 'grows']);
});

test('a server that hangs delays no other', async (t) => {
  const [hanging, other] = [new FakeServer(5 * MIB), new FakeServer(5 * MIB)];
  const { disk, guard } = guardOver(t, [hanging, other]);
  hanging.hangs = true;
  disk.level = 'out';
  void guard.check();
  while (other.waits === null) await new Promise(setImmediate);
  disk.level = 'ample';
  while (other.said !== 'grows') {
    void guard.check();
    await new Promise(setImmediate);
  }
  assert.equal(hanging.waits, null);
});
