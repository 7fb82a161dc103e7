/** The guard over servers whose sizes the test sets; faults/database-servers-disk-full has real ones. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DiskLevel } from '../../platform/disk-space.ts';
import { DiskGuard, type Guarded } from './disk-guard.ts';
import type { Waits } from './held-back.ts';

const MIB = 2 ** 20;

class FakeServer implements Guarded {
  isUp = true;
  /** What a measurement finds. */
  size: number;
  bytes = 0;
  readonly limitBytes = 2 ** 40;
  waits: Waits | null = null;
  isHeld = false;
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

test('who grows while the disk is scarce is held back, the others wait when it is low, all go on with space', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-guard-'));
  const [large, grower, quiet] = [
    new FakeServer(900 * MIB),
    new FakeServer(5 * MIB),
    new FakeServer(5 * MIB),
  ];
  const servers = [large, grower, quiet];
  let level: DiskLevel = 'ample';
  const guard = new DiskGuard({ folder, level: () => level, servers: () => servers });
  t.after(() => {
    guard.close();
    rmSync(folder, { recursive: true });
  });
  /** Measurements come with every 20th check. */
  const look = async () => {
    for (let checks = 0; checks < 21; checks++) await guard.check();
    return servers.map(({ said }) => said);
  };
  assert.deepEqual(await look(), ['grows', 'grows', 'grows']);
  level = 'scarce';
  await guard.check();
  // One that has just started is not taken for one that grew to its size.
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
  level = 'low';
  assert.deepEqual(await look(), ['waits, reads', 'is held back', 'waits, reads', 'waits, reads']);
  level = 'out';
  assert.ok((await look()).every((said) => said.endsWith(', reads')));
  level = 'ample';
  assert.deepEqual(await look(), ['grows', 'grows', 'grows', 'grows']);
});
