/** Requirements for any recovery target. The test of a driver calls this with a function that opens one. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { FakeClock } from '../platform/clock.ts';
import { isAppError } from '../platform/errors.ts';
import { randomSecret } from '../platform/ids.ts';
import { BLOCK_BYTES, fixedBlocks } from '../recovery/repository/chunks.ts';
import { Lease } from '../recovery/repository/lease.ts';
import { Damaged } from '../recovery/repository/piece-box.ts';
import { newRecoveryKey } from '../recovery/repository/recovery-keys.ts';
import { pieceFile, Repository } from '../recovery/repository/repository.ts';
import {
  createRepository,
  findRepository,
  unlockRepository,
} from '../recovery/repository/repository-head.ts';
import type { Target } from '../recovery/repository/target.ts';

const [ONE, TWO] = ['1', '2'].map((digit) => `drp-${digit.repeat(26)}`) as [string, string];
const never = new AbortController().signal;
const PLAIN = { isPacked: false, signal: never };

/** `again` opens the same target again, like another process. */
export interface OpenedForTest {
  readonly target: Target;
  readonly again: () => Target;
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

export function testRecoveryTarget(name: string, open: () => Promise<OpenedForTest>): void {
  describe(`${name}: files`, () => {
    test('are stored, replaced, listed, read and removed', async () => {
      const { target } = await open();
      assert.equal(await target.get('points/a'), undefined);
      assert.equal(await target.has('points/a'), false);
      assert.deepEqual(await Array.fromAsync(target.list('points')), []);
      await target.put('points/a', Buffer.from('first'));
      await target.putSynced('points/a', Buffer.from('second one'));
      await target.put('points/empty', Buffer.alloc(0));
      await target.put('pieces/ab/abc', randomSecret(100_000));
      await target.sync();
      assert.equal((await target.get('points/a'))?.toString(), 'second one');
      assert.equal((await target.get('points/empty'))?.length, 0);
      assert.equal(await target.has('points/a'), true);
      assert.deepEqual((await Array.fromAsync(target.list('points'))).sort(), ['points/a', 'points/empty']);
      assert.deepEqual(await Array.fromAsync(target.list('pieces')), ['pieces/ab/abc']);
      assert.equal(await target.remove('points/a'), 10);
      assert.equal(await target.remove('points/a'), 0);
      assert.equal(await target.get('points/a'), undefined);
      for await (const file of target.list('pieces')) assert.equal(await target.remove(file), 100_000);
      assert.equal(await target.removeUnfinished('pieces'), 0);
    });

    test('have space, as far as that is known', async () => {
      const { target } = await open();
      const { isOnDataDisk, freeBytes } = await target.inspect(tmpdir());
      assert.equal(typeof isOnDataDisk, 'boolean');
      assert.ok(freeBytes === null || freeBytes > 0);
    });

    test('of many who create one, one succeeds', async () => {
      const { target, again } = await open();
      const other = again();
      const made = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          (i % 2 ? target : other).create('writers/1', Buffer.from(`${i}`)),
        ),
      );
      assert.equal(made.filter(Boolean).length, 1);
      assert.equal((await target.get('writers/1'))?.toString(), String(made.indexOf(true)));
      assert.equal(await target.create('writers/1', Buffer.from('late')), false);
    });

    test('more of them than a page of a listing has', async () => {
      const { target } = await open();
      const names = Array.from({ length: 1100 }, (_, i) => `deleting/${String(i).padStart(5, '0')}`);
      for (let at = 0; at < names.length; at += 50) {
        await Promise.all(names.slice(at, at + 50).map((each) => target.put(each, Buffer.alloc(0))));
      }
      assert.deepEqual((await Array.fromAsync(target.list('deleting'))).sort(), names);
    });
  });

  testPieces(name, open);
  testDamage(name, open);
  testRepository(name, open);
}

function testPieces(name: string, open: () => Promise<OpenedForTest>): void {
  describe(`${name}: pieces`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-pieces-'));
    after(() => rmSync(folder, { recursive: true }));
    const key = randomSecret(32);
    let target: Target;
    before(async () => {
      ({ target } = await open());
      await target.put('repository.json', Buffer.from('{}'));
    });

    test('come back, and equal ones are stored once', async () => {
      const pieces = target.pieces(key);
      for (const size of [0, 1, 5000, BLOCK_BYTES, 4 * BLOCK_BYTES]) {
        for (const isPacked of [false, true]) {
          const bytes = isPacked ? randomSecret(size) : Buffer.alloc(size, 'text that repeats ');
          const first = await pieces.keep(Buffer.from(bytes), isPacked);
          const { name: again, addedBytes } = await pieces.keep(Buffer.from(bytes), isPacked);
          assert.deepEqual([again, addedBytes], [first.name, 0]);
          assert.ok((await pieces.read(first.name)).equals(bytes));
          await pieces.check(first.name, true);
          await pieces.check(first.name, false);
        }
      }
    });

    test('of a file of this host become that file again, with its holes', async () => {
      const pieces = target.pieces(key);
      const hole = Buffer.alloc(3 * BLOCK_BYTES);
      const bytes = Buffer.concat([randomSecret(5 * BLOCK_BYTES), hole, randomSecret(BLOCK_BYTES + 77)]);
      const path = join(folder, 'disk');
      writeFileSync(path, bytes);
      const names: string[] = [];
      for (let from = 0, isEnd = false; !isEnd; ) {
        const part = await pieces.keepPart({ path, from }, false);
        if ('unreadable' in part) return assert.fail(String(part.unreadable));
        names.push(...part.pieces);
        from += part.bytes;
        ({ isEnd } = part);
      }
      assert.equal(names.length, 10);
      const back = { path: join(folder, 'back'), mode: 0o600 };
      await pieces.writeFile(back, names);
      assert.ok(readFileSync(back.path).equals(bytes));
      assert.ok(statSync(back.path).blocks * 512 <= bytes.length - hole.length + BLOCK_BYTES);
      assert.deepEqual(await pieces.keepPart({ path: join(folder, 'none'), from: 0 }, false), {
        unreadable: null,
      });
    });

    test('many at once', async () => {
      const pieces = target.pieces(key);
      const all = Array.from({ length: 40 }, () => randomSecret(300_000));
      const kept = await Promise.all(all.map((bytes) => pieces.keep(Buffer.from(bytes), true)));
      const read = await Promise.all(kept.map(({ name: piece }) => pieces.read(piece)));
      for (const [i, bytes] of all.entries()) assert.ok(read[i]?.equals(bytes));
    });
  });
}

function testDamage(name: string, open: () => Promise<OpenedForTest>): void {
  describe(`${name}: pieces`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-pieces-'));
    after(() => rmSync(folder, { recursive: true }));

    test('that are missing or altered are known, and stored again when they are distrusted', async () => {
      const { target } = await open();
      await target.put('repository.json', Buffer.from('{}'));
      const pieces = target.pieces(randomSecret(32));
      const bytes = randomSecret(200_000);
      const { name: piece } = await pieces.keep(Buffer.from(bytes), true);
      const sealed = (await target.get(pieceFile(piece))) as Buffer;
      const is = (problem: string) => (error: unknown) =>
        error instanceof Damaged && error.problem === problem;
      for (const hurt of [
        sealed.subarray(0, 1000),
        Buffer.alloc(0),
        sealed.with(777, (sealed[777] as number) ^ 1),
      ]) {
        await target.put(pieceFile(piece), hurt);
        for (const isQuick of [true, false])
          await assert.rejects(pieces.check(piece, isQuick), is('altered'));
        await assert.rejects(pieces.read(piece), is('altered'));
        await assert.rejects(
          pieces.writeFile({ path: join(folder, 'hurt'), mode: 0o600 }, [piece]),
          is('altered'),
        );
      }
      assert.equal((await pieces.keep(Buffer.from(bytes), true)).addedBytes, 0);
      pieces.distrust(new Set([piece]));
      assert.ok((await pieces.keep(Buffer.from(bytes), true)).addedBytes > 0);
      pieces.distrust(new Set());
      assert.ok((await pieces.read(piece)).equals(bytes));
      await target.remove(pieceFile(piece));
      await assert.rejects(pieces.read(piece), is('missing'));
      await assert.rejects(pieces.check(piece, true), is('missing'));
    });
  });
}

function testRepository(name: string, open: () => Promise<OpenedForTest>): void {
  describe(`${name}: a repository`, () => {
    const [key, recoveryKey] = [randomSecret(32), newRecoveryKey()];

    test('is made once, opened by either key, and holds points until they are forgotten', async () => {
      const { target, again } = await open();
      assert.equal(await findRepository(target, key), undefined);
      const keys = await createRepository(target, { key, recoveryKey });
      assert.equal(await createRepository(again(), { key, recoveryKey }), undefined);
      assert.deepEqual(await findRepository(again(), key), keys);
      await assert.rejects(unlockRepository(target, newRecoveryKey()), /another repository/);
      const repository = new Repository(again(), await unlockRepository(again(), recoveryKey));
      const bytes = randomSecret(3 * BLOCK_BYTES);
      const stored = await repository.store(fixedBlocks(once(bytes)), PLAIN);
      assert.deepEqual((await Array.fromAsync(repository.pieces())).sort(), stored.pieces.toSorted());
      await repository.putManifest(ONE, Buffer.from('{"one":1}'));
      await repository.putManifest(TWO, Buffer.from('{"two":2}'));
      assert.deepEqual(await repository.points(), [ONE, TWO]);
      await repository.markDeleted(ONE);
      assert.deepEqual(await repository.deleted(), [ONE]);
      await repository.unmarkDeleted(ONE);
      assert.deepEqual(await repository.deleted(), []);
      await repository.forget([ONE]);
      assert.deepEqual(await repository.points(), [TWO]);
      assert.equal((await repository.getManifest(TWO))?.bytes.toString(), '{"two":2}');
      await repository.putJournal('0'.repeat(32), Buffer.from('what was revoked'));
      assert.equal((await repository.getJournal('0'.repeat(32)))?.toString(), 'what was revoked');
    });

    test('has one writer at a time', async () => {
      const { target, again } = await open();
      const leaseOf = (cloud: string, at: Target) =>
        new Lease({
          target: at,
          clock: new FakeClock(),
          cloud: async () => cloud,
          host: cloud,
          silenceMs: 60_000,
        });
      const leases = Array.from({ length: 6 }, (_, i) => leaseOf(`cloud ${i}`, i === 0 ? target : again()));
      const held = await Promise.allSettled(leases.map((lease) => lease.hold()));
      const holding = held.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
      assert.equal(holding.length, 1);
      for (const each of held) {
        if (each.status === 'rejected')
          assert.ok(isAppError(each.reason, 'target_in_use'), String(each.reason));
      }
      await holding[0]?.assertHeld();
      await holding[0]?.release();
      const next = await leaseOf('another', again()).hold();
      await assert.rejects(holding[0]?.assertHeld() ?? Promise.resolve(), { code: 'target_in_use' });
      await next.release();
    });
  });
}
