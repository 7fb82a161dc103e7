/** A recovery target in S3 that fails: temporarily, permanently, or without an answer. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { parseS3Url } from '../../config/s3-address.ts';
import { FakeClock, systemClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { BLOCK_BYTES, fixedBlocks } from '../../recovery/repository/chunks.ts';
import { Lease } from '../../recovery/repository/lease.ts';
import { Repository } from '../../recovery/repository/repository.ts';
import { createRepository } from '../../recovery/repository/repository-head.ts';
import { eventually } from '../../testing/eventually.ts';
import { type Fault, S3Fixture } from '../../testing/s3-fixture.ts';
import { S3RecoveryTarget } from './s3-recovery-target.ts';

const NEVER = new AbortController().signal;
const NONE = Buffer.alloc(0);
const POINT = `drp-${'1'.repeat(26)}`;

let s3: S3Fixture;
before(async () => {
  s3 = await S3Fixture.start();
});
after(() => s3.close());

let prefixes = 0;

async function openTarget() {
  s3.fault = () => undefined;
  const address = parseS3Url(s3.url(`p${++prefixes}`));
  const target = new S3RecoveryTarget({ address, clock: systemClock, isOwn: async () => false, lockDays: 0 });
  await target.prove();
  s3.seen.length = 0;
  return { target };
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

const PASSING = [
  { status: 500 },
  { status: 503, code: 'SlowDown' },
  { status: 429 },
  'lose',
  'hurt-upload',
] as const;

describe('faults that pass', () => {
  for (const fault of [...PASSING, 'cut', 'hurt'] as const) {
    test(`${JSON.stringify(fault)}: each request meets it once`, async () => {
      const { target } = await openTarget();
      const failed = new Set<string>();
      const isOfBodies = fault === 'cut' || fault === 'hurt';
      s3.fault = ({ method, path }) => {
        const id = `${method} ${path}`;
        const isOfPieces = path.includes('/pieces/');
        if (failed.has(id) || (isOfBodies && !(method === 'GET' && isOfPieces))) return undefined;
        failed.add(id);
        return fault;
      };
      const keys = await createRepository(target, { key: randomSecret(32), recoveryKey: randomSecret(32) });
      assert.ok(keys !== undefined);
      const repository = new Repository(target, keys);
      const bytes = randomSecret(3 * BLOCK_BYTES);
      const { pieces } = await repository.store(fixedBlocks(once(bytes)), { isPacked: true, signal: NEVER });
      const lease = new Lease({
        target,
        clock: new FakeClock(),
        cloud: async () => 'a',
        host: 'a',
        silenceMs: 60_000,
      });
      const holding = await lease.hold();
      await repository.putManifest(POINT, Buffer.from('{}'), () => holding.assertHeld());
      await holding.release();
      assert.deepEqual(await repository.points(), [POINT]);
      for (const piece of pieces) assert.equal(await repository.check(piece), undefined);
      assert.ok(Buffer.concat(await Array.fromAsync(repository.read(pieces))).equals(bytes));
      assert.ok(failed.size > (isOfBodies ? 2 : 8));
    });
  }
});

describe('faults that stay', () => {
  const cases: [string, Fault, RegExp, string][] = [
    ['wrong keys', { status: 403, code: 'InvalidAccessKeyId' }, /InvalidAccessKeyId/, 'target_unavailable'],
    [
      'a wrong clock',
      { status: 403, code: 'RequestTimeTooSkewed' },
      /RequestTimeTooSkewed/,
      'target_unavailable',
    ],
    ['no bucket', { status: 404, code: 'NoSuchBucket' }, /NoSuchBucket/, 'target_unavailable'],
    ['no space', { status: 403, code: 'QuotaExceeded' }, /is full: s3:/, 'out_of_space'],
  ];
  for (const [name, fault, message, code] of cases) {
    test(`${name} are said at once, by pieces too`, async () => {
      const { target } = await openTarget();
      await target.put('repository.json', Buffer.from('{}'));
      const pieces = target.pieces(randomSecret(32));
      const { name: piece } = await pieces.keep(randomSecret(1000), true);
      s3.fault = () => fault;
      s3.seen.length = 0;
      const isIt = (error: unknown) =>
        isAppError(error, code as 'out_of_space') && message.test(error.message);
      await assert.rejects(target.put('points/a', Buffer.from('x')), isIt);
      await assert.rejects(pieces.keep(randomSecret(1000), true), isIt);
      await assert.rejects(pieces.read(piece), isIt);
      assert.ok(s3.seen.length <= 4, 'nothing is tried twice');
    });
  }

  test('a target that is away fails when told to hurry, and does not hang', async () => {
    const { target } = await openTarget();
    await target.put('repository.json', Buffer.from('{}'));
    const pieces = target.pieces(randomSecret(32));
    s3.fault = () => 'hang';
    const waiting = [
      target.get('points/a'),
      pieces.keep(randomSecret(1000), true),
      target.put('points/a', NONE),
    ];
    await eventually(() => s3.seen.length >= 3);
    target.hurry();
    const ended = await Promise.allSettled(waiting);
    assert.deepEqual(
      ended.map((each) => each.status === 'rejected' && isAppError(each.reason, 'target_unavailable')),
      [true, true, true],
    );
  });
});
