import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { unzip } from '../../../test/harness/zip.ts';
import { type ExportedFile, type ExportSource, jsonFile, Unreadable } from '../../calls/account-export.ts';
import type { Principal } from '../../calls/principal.ts';
import { spoolsIn } from '../../drivers/spool-files.ts';
import { isAppError } from '../../platform/errors.ts';
import { by, newPrincipal, openAccountFixture } from '../../testing/account-fixture.ts';
import { AccountExports } from './account-exports.ts';

let fixture: Awaited<ReturnType<typeof openAccountFixture>>;
let owner: Principal;
before(async () => {
  fixture = await openAccountFixture();
  owner = await newPrincipal(fixture.accounts, 'owner');
});
after(() => fixture.close());

type Read = ExportedFile['read'];

/** More in all than at once: readers that are slow. */
const SLOW_TOO = { mostAtOnce: 2, mostInAll: 3 };

function exportsOf(...files: readonly { readonly path: string; readonly read: Read }[]) {
  return exportsWith({ mostAtOnce: 2, mostInAll: 2 }, files);
}

function exportsWith(
  most: { readonly mostAtOnce: number; readonly mostInAll: number },
  files: readonly { readonly path: string; readonly read: Read }[] = [],
) {
  let open = 0;
  const spools = spoolsIn(fixture.directory, () => {});
  const source: ExportSource = {
    async *files() {
      yield jsonFile('first.json', { a: 1 });
      for (const file of files) yield { kind: null, modifiedAt: 0, sizeBytes: null, ...file };
      yield { path: 'secret', leftOut: 'nobody can read it' };
      yield jsonFile('last.json', { z: 1 });
    },
  };
  const exports = new AccountExports({
    ...fixture,
    checks: { assertFresh: async () => {} },
    sources: [source],
    ...most,
    openSpool: () => {
      const spool = spools();
      open++;
      const close = async () => {
        open--;
        await spool.close();
      };
      return { append: (bytes) => spool.append(bytes), bytes: () => spool.bytes(), close };
    },
  });
  return { exports, countOpen: () => open };
}

async function send(exports: AccountExports): Promise<Buffer> {
  const pieces: Buffer[] = [];
  const { send: run } = await exports.openOwn(by(owner), false);
  await run(async (piece) => void pieces.push(Buffer.from(piece)), new AbortController().signal);
  return Buffer.concat(pieces);
}

const unreadable = () => Promise.reject(new Unreadable('it is damaged'));

test('what cannot be read is told, and what breaks off stays as far as it came', async () => {
  const { exports, countOpen } = exportsOf(
    { path: 'gone', read: unreadable },
    { path: 'half', read: (sink) => sink(Buffer.from('half')).then(unreadable) },
  );
  const files = unzip(await send(exports));
  assert.deepEqual(
    files.map(({ name }) => name),
    ['first.json', 'half', 'last.json', 'MANIFEST.json'],
  );
  const manifest = JSON.parse(String(files.at(-1)?.bytes));
  assert.deepEqual(manifest.left_out, [
    { path: 'gone', reason: 'it is damaged' },
    { path: 'half', reason: 'incomplete: it is damaged' },
    { path: 'secret', reason: 'nobody can read it' },
  ]);
  const half = manifest.files.find(({ path }: { path: string }) => path === 'half');
  assert.deepEqual([half.bytes, half.left_out], [4, 'incomplete: it is damaged']);
  assert.equal(manifest.counts.left_out, 3);
  assert.equal(countOpen(), 0);
});

test('any other error ends the archive without a directory, and frees what it held', async () => {
  const read: Read = async (sink) => {
    await sink(Buffer.from('half'));
    throw new Error('the disk is gone');
  };
  const { exports, countOpen } = exportsOf({ path: 'half', read });
  const pieces: Buffer[] = [];
  const { send: run } = await exports.openOwn(by(owner), false);
  const sent = run(async (piece) => void pieces.push(Buffer.from(piece)), new AbortController().signal);
  await assert.rejects(sent, /the disk is gone/);
  assert.ok(!Buffer.concat(pieces).includes('504b0506', 0, 'hex'));
  assert.equal(countOpen(), 0);
  await assert.rejects(send(exports), /the disk is gone/, 'the next one may run');
});

test('one runs at a time', async () => {
  const { exports } = exportsOf();
  const gone = Promise.withResolvers<void>();
  const { send: run } = await exports.openOwn(by(owner), false);
  const first = run(() => gone.promise, new AbortController().signal);
  await assert.rejects(send(exports), (error) => isAppError(error, 'job_running'));
  gone.resolve();
  await first;
  assert.equal(unzip(await send(exports)).length, 3);
});

test('few run at once, whoever they are of', async () => {
  const { exports } = exportsOf();
  const gone = Promise.withResolvers<void>();
  const others = [
    await newPrincipal(fixture.accounts, 'other'),
    await newPrincipal(fixture.accounts, 'third'),
  ];
  const begin = async (principal: Principal) => {
    const { send: run } = await exports.openOwn(by(principal), false);
    return run(() => gone.promise, new AbortController().signal);
  };
  const running = others.map((one) => begin(one));
  await new Promise((resolve) => setImmediate(resolve));
  await assert.rejects(begin(owner), (error) => isAppError(error, 'overloaded'));
  gone.resolve();
  await Promise.all(running);
  assert.equal(unzip(await send(exports)).length, 3);
});

test('a reader that takes nearly nothing for a minute gives its place to who waits, and no other does', async () => {
  const { exports, countOpen } = exportsOf();
  const gone = Promise.withResolvers<void>();
  const [slow, quick] = [
    await newPrincipal(fixture.accounts, 'slow'),
    await newPrincipal(fixture.accounts, 'quick'),
  ];
  const begin = async (principal: Principal, take: () => Promise<void>) =>
    (await exports.openOwn(by(principal), false)).send(take, new AbortController().signal);
  const first = begin(slow, () => gone.promise);
  await new Promise((resolve) => setImmediate(resolve));
  fixture.clock.advance(40_000);
  const second = begin(quick, () => gone.promise);
  await new Promise((resolve) => setImmediate(resolve));
  fixture.clock.advance(19_000);
  await assert.rejects(send(exports), (error) => isAppError(error, 'overloaded'), 'not a minute yet');
  fixture.clock.advance(1000);
  const third = send(exports);
  await assert.rejects(first, (error) => isAppError(error, 'overloaded'));
  assert.equal(unzip(await third).length, 3);
  gone.resolve();
  await second;
  assert.equal(countOpen(), 0);
});

test('readers just above the least speed take no place of others, who end the slowest when there are too many', async () => {
  const { exports } = exportsWith(SLOW_TOO);
  const names = ['crawls', 'creeps', 'strolls'];
  const principals = [];
  for (const name of names) principals.push(await newPrincipal(fixture.accounts, name));
  const gone = Promise.withResolvers<void>();
  /** Its first piece arrives after `ms`; its second is never taken. */
  const begin = async (principal: Principal, first: Promise<void>) => {
    let pieces = 0;
    const take = () => (++pieces === 1 ? first : gone.promise);
    return (await exports.openOwn(by(principal), false)).send(take, new AbortController().signal);
  };
  const [crawls, creeps, strolls] = principals as [Principal, Principal, Principal];
  const read = Promise.withResolvers<void>();
  const first = begin(crawls, gone.promise);
  const second = begin(creeps, read.promise);
  await new Promise((resolve) => setImmediate(resolve));
  await assert.rejects(send(exports), (error) => isAppError(error, 'overloaded'), 'both may be quick');
  fixture.clock.advance(10_000);
  assert.equal(unzip(await send(exports)).length, 3, 'neither is');
  read.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  const third = begin(strolls, gone.promise);
  await new Promise((resolve) => setImmediate(resolve));
  await assert.rejects(send(exports), (error) => isAppError(error, 'overloaded'), 'none had a minute');
  fixture.clock.advance(50_000);
  const fourth = send(exports);
  await assert.rejects(first, (error) => isAppError(error, 'overloaded'));
  assert.equal(unzip(await fourth).length, 3);
  gone.resolve();
  await Promise.all([second, third]);
});

test('a reader that was quick before is slow now', async () => {
  const { exports } = exportsWith({ mostAtOnce: 1, mostInAll: 2 }, [
    { path: 'large', read: (sink) => sink(Buffer.alloc(64 * 2 ** 20)) },
    { path: 'small', read: (sink) => sink(Buffer.from('small')) },
  ]);
  const hare = await newPrincipal(fixture.accounts, 'hare');
  const gone = Promise.withResolvers<void>();
  const hasMuch = Promise.withResolvers<void>();
  let bytes = 0;
  const take = async (piece: Uint8Array) => {
    if (bytes >= 64 * 2 ** 20) {
      hasMuch.resolve();
      await gone.promise;
    }
    bytes += piece.length;
  };
  const first = (await exports.openOwn(by(hare), false)).send(take, new AbortController().signal);
  await hasMuch.promise;
  await assert.rejects(send(exports), (error) => isAppError(error, 'overloaded'));
  fixture.clock.advance(20_000);
  assert.equal(unzip(await send(exports)).length, 5);
  gone.resolve();
  await first;
});
