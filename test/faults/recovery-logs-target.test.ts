/** A target of archived logs that is full, slow or missing does not affect the live databases. */
import assert from 'node:assert/strict';
import { readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { NO_POSTGRESQL } from '../../scripts/installed.ts';
import { type Fault, S3Fixture } from '../../server/testing/s3-fixture.ts';
import { DATABASES, rowsOf, run } from '../acceptance/databases-kit.ts';
import { LosableCloud } from '../acceptance/recovery-kit.ts';
import { eventually } from '../harness/waiting.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';

const MIB = 2 ** 20;
const ENV = { CLOUDLET_CONTINUOUS_SECONDS: '1' };
/** max_slot_wal_keep_size, a segment in progress, and segments kept by a checkpoint for reuse. */
const MOST_LOG_MIB = 128 + 2 * 16 + 80;

/** A cloud with one database, whose log is archived. */
class Shop {
  readonly lost: LosableCloud;
  readonly path: string;

  constructor(lost: LosableCloud, path: string) {
    this.lost = lost;
    this.path = path;
  }

  /** null: there is no PostgreSQL here. */
  static async open(target: string): Promise<Shop | null> {
    const lost = await LosableCloud.start({ ...ENV, CLOUDLET_RECOVERY_TARGET: target });
    await lost.point();
    const json = { name: 'shop', engine: 'postgresql', size_limit_mb: 2000 };
    const { status, body } = await lost.user.call(DATABASES, { json });
    if (status !== 201) {
      await lost.end();
      return null;
    }
    const shop = new Shop(lost, `${DATABASES}/${body.database_id}`);
    await run(lost.user, shop.path, 'CREATE TABLE notes (i SERIAL PRIMARY KEY, x TEXT)');
    await eventually('the log is archived', async () => (await shop.windows()).length > 0);
    return shop;
  }

  async windows(): Promise<readonly { readonly from: string; readonly to: string }[]> {
    return (await this.lost.user.expect(200, `${this.path}/moments`)).windows;
  }

  /** Writes this much of the log, one commit after the other. */
  async write(mib: number): Promise<void> {
    for (let at = 0; at < mib; at++)
      await run(
        this.lost.user,
        this.path,
        `INSERT INTO notes (x)
        SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 64) g, generate_series(1, ${MIB / 32 / 64})
        GROUP BY g`,
      );
  }

  /** Milliseconds of the slowest of several commits. */
  async slowest(): Promise<number> {
    let most = 0;
    for (let at = 0; at < 20; at++) {
      const began = performance.now();
      await run(this.lost.user, this.path, `INSERT INTO notes (x) VALUES ('${at}')`);
      most = Math.max(most, performance.now() - began);
    }
    return most;
  }

  async count(path = this.path): Promise<number> {
    const [[count] = []] = await rowsOf(this.lost.user, path, 'SELECT count(*)::int FROM notes');
    return Number(count);
  }

  /** The time of the server, ms. */
  async now(): Promise<number> {
    const [[at] = []] = await rowsOf(this.lost.user, this.path, 'SELECT clock_timestamp()::text');
    return Date.parse(String(at));
  }

  /** Resolves when the present can be restored again, with the rows of a restore. */
  async protectedAgain(): Promise<number> {
    const at = await this.now();
    const reach = async () => Date.parse(`${(await this.windows())[0]?.to}Z`);
    await eventually('the present is archived', async () => (await reach()) > at);
    const from = { database_id: this.path.slice(DATABASES.length + 1), at: new Date(at).toISOString() };
    const { database_id: id } = await this.lost.user.expect(201, DATABASES, {
      json: { name: `b-${at}`, from },
    });
    return this.count(`${DATABASES}/${id}`);
  }
}

/** Size of the log of the only server, MiB. */
function logMib(dataDir: string): number {
  const all = readdirSync(join(dataDir, 'databases', 'postgresql'), { recursive: true, encoding: 'utf8' });
  const files = all.filter((name) => /pg_wal\/[0-9A-F]{24}$/.test(name) && !name.includes('scratch'));
  const sizes = files.map((name) => statSync(join(dataDir, 'databases', 'postgresql', name)).size);
  return sizes.reduce((sum, size) => sum + size, 0) / MIB;
}

const noDisk = noLoopDisk();

describe('a full target', { skip: noDisk }, () => {
  let disk: LoopDisk;
  let shop: Shop | null = null;
  before(async () => {
    disk = new LoopDisk(160 * MIB);
    shop = await Shop.open(disk.mountPoint);
  });
  after(async () => {
    await shop?.lost.end();
    disk.remove();
  });

  test('delays no commit, and what was kept is archived when there is space', async (t) => {
    if (shop === null) return t.skip(NO_POSTGRESQL);
    const { bavail, bsize } = statfsSync(disk.mountPoint);
    const filling = join(disk.mountPoint, 'filling');
    writeFileSync(filling, Buffer.alloc(bavail * bsize - 64 * 1024));
    // Less than the server's maximum: above this there is a gap, and a new timeline begins after ten minutes.
    await shop.write(60);
    const mib = logMib(shop.lost.dataDir);
    assert.ok(mib >= 60 && mib <= MOST_LOG_MIB, `${mib} MiB of log`);
    const rows = await shop.count();
    const slowest = await shop.slowest();
    t.diagnostic(`slowest of 20 commits: ${Math.round(slowest)} ms; ${mib} MiB of log`);
    assert.ok(slowest < 2000, `a commit took ${slowest} ms`);
    rmSync(filling);
    assert.equal(await shop.protectedAgain(), rows + 20);
  });
});

describe('S3 as target', () => {
  let s3: S3Fixture;
  let shop: Shop | null = null;
  before(async () => {
    s3 = await S3Fixture.start();
    shop = await Shop.open(s3.url('points'));
  });
  after(async () => {
    s3.fault = () => undefined;
    await shop?.lost.end();
    await s3.close();
  });
  const hurtLogs = (fault: Fault) => {
    s3.fault = ({ path }) => (path.includes('/logs/') ? fault : undefined);
  };

  test('that is slow, hangs or is gone delays no commit, and is used again when it is back', async (t) => {
    if (shop === null) return t.skip(NO_POSTGRESQL);
    const usual = await shop.slowest();
    hurtLogs('slow');
    await shop.write(4);
    const slow = await shop.slowest();
    assert.equal(await shop.protectedAgain(), await shop.count(), 'a slow target is used all the same');
    hurtLogs('hang');
    await shop.write(4);
    const hanging = await shop.slowest();
    await s3.shut();
    await shop.write(4);
    const gone = await shop.slowest();
    t.diagnostic(`slowest of 20 commits, ms: ${[usual, slow, hanging, gone].map(Math.round).join(', ')}`);
    // One slow answer of the target would be too long.
    const most = Math.max(slow, hanging, gone);
    assert.ok(most < 2000, `a commit took ${most} ms`);
    const rows = await shop.count();
    s3.fault = () => undefined;
    await s3.open();
    assert.equal(await shop.protectedAgain(), rows);
  });
});
