import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { PostgresqlMetadata } from '../../drivers/metadata-postgresql/postgresql-metadata.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import type { FakeClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import type { Fact } from '../objects/object-sql.ts';

/** Each value set by the owner of a bucket, with one flipped bit. */
const FLIPS = {
  name: "'plaim'",
  region: "'us-east-0'",
  versioning: '0',
  encryption: '1',
  settings: `'{"tags":{"a":"c"}}'`,
  'settings that are no JSON': `'{"tags":{"a":"b"}]'`,
} as const;

/** Row ids of the object `mine`, or of its version, with a flipped bit. */
const OTHERS_BLOB = (name: string) => `UPDATE versions SET blob = (SELECT v.blob FROM versions v
  JOIN objects o ON o.current = v.id WHERE o.name = '${name}')
  WHERE id = (SELECT current FROM objects WHERE name = 'mine')`;
const FLIPPED_LINKS = {
  'bytes of another size': OTHERS_BLOB('other'),
  'bytes of the same size': OTHERS_BLOB('hers'),
  'bytes that are not there': OTHERS_BLOB('nobody').replace(/\(SELECT v.blob[^)]*\)/, '4096'),
  'the current version': `UPDATE objects SET current = (SELECT o.current FROM objects o WHERE o.name = 'hers')
    WHERE name = 'mine'`,
} as const;

const RUN = { bytesPerSecond: 2 ** 40, fresh: true };
const damagedRows: number[] = [];
let fixture: StorageFixture;
let owner: Principal;
const noted: Promise<void>[] = [];

type OpenMetadata = (directory: string, clock: FakeClock) => Promise<Metadata>;

async function open(openMetadata?: OpenMetadata): Promise<void> {
  damagedRows.length = noted.length = 0;
  fixture = await openStorageFixture({
    ...(openMetadata && { openMetadata }),
    onDamagedRow: (version) => void damagedRows.push(version),
    onDamagedBucket: (bucket) => void noted.push(fixture.openScrubber().noteDamagedBucket(bucket)),
  });
  owner = await fixture.newPrincipal('owner');
  await fixture.buckets.create(by(owner), { name: 'plain', versioning: true });
}

const put = (name: string) =>
  fixture.put(owner, 'plain', { name, bytes: Buffer.from(name), metadata: '{"project":"moon"}' });

/** Like a flipped bit: without the knowledge of any code. */
const change = (sql: string, ...params: (string | number)[]) => fixture.metadata.commit([{ sql, params }]);

async function scrub(): Promise<{ damaged: string[]; rows: number; checked: number }> {
  const scrubber = fixture.openScrubber();
  await scrubber.run(RUN);
  const { damaged_rows: rows, checked_rows: checked } = await scrubber.status();
  return { damaged: (await scrubber.damage()).map(({ name }) => name).sort(), rows, checked };
}

async function versionOf(objectId: string): Promise<number> {
  return (await fixture.store.findById(objectId))?.current ?? assert.fail('no version');
}

async function setFacts(id: number, ...facts: Fact[]): Promise<void> {
  for (const fact of facts) {
    const row = await fixture.store.version(id);
    assert.ok(row);
    await fixture.metadata.commit([fixture.store.setFact(row, fact, row.metadata_bytes)]);
  }
}

describe('with the metadata in SQLite', () => {
  beforeEach(() => open());
  afterEach(() => fixture.close());
  checks();
});

describe('with the metadata in PostgreSQL', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  let made = 0;
  before(async () => {
    server = await operatorPostgresql();
  });
  after(() => server?.close());
  beforeEach(async () => {
    const name = `cloudlet${made++}`;
    await server.run(`CREATE DATABASE ${name}`);
    const url = server.url('postgres', 'of-the-operator').replace(/postgres$/, name);
    await open((_, clock) =>
      PostgresqlMetadata.open({ url, clock, alarms: new Alarms(clock), onTakenOver: assert.fail }),
    );
  });
  afterEach(() => fixture.close());
  checks();
});

function checks(): void {
  test('rows that are as they were written are sound, also with tags, an ACL, a lock and delete markers', async () => {
    const { object_id } = await put('a');
    await put('b');
    const version = await versionOf(object_id);
    const lock = { lock_mode: 'GOVERNANCE', retain_until: 5, locked_until: 6, legal_hold: 1 } as const;
    const none = { lock_mode: null, retain_until: null, locked_until: null, legal_hold: null };
    const { store } = fixture;
    await setFacts(version, { tags: '{"a":"b"}' }, { acl: '{}' });
    await fixture.metadata.commit([store.setLock(version, none, lock)]);
    await fixture.removals.remove(by(owner), (await put('c')).object_id);
    assert.deepEqual(await scrub(), { damaged: [], rows: 0, checked: 4 });
    await setFacts(version, { tags: null });
    await fixture.metadata.commit([store.setLock(version, lock, none)]);
    assert.deepEqual((await scrub()).damaged, []);
  });

  test('a changed value of any kind is found, named, raises the alarm and is cleared when it is right again', async () => {
    const sound = await put('sound');
    const changes: Record<string, [string, string | number, string | number]> = {
      metadata: ['metadata', '{"project":"noon"}', '{"project":"moon"}'],
      type: ['mime_type', 'text/html', 'application/octet-stream'],
      tags: ['tags', '{"a":"c"}', '{"a":"b"}'],
      acl: ['acl', '{"x":1}', '{"x":0}'],
      lock: ['legal_hold', 0, 1],
    };
    const versions = new Map<string, number>();
    for (const name of Object.keys(changes)) {
      const id = await versionOf((await put(name)).object_id);
      versions.set(name, id);
      const { store } = fixture;
      await setFacts(id, { tags: '{"a":"b"}' }, { acl: '{"x":0}' });
      const none = { lock_mode: null, retain_until: null, locked_until: null, legal_hold: null };
      await fixture.metadata.commit([store.setLock(id, none, { ...none, legal_hold: 1 })]);
    }
    assert.deepEqual((await scrub()).damaged, []);
    const types = new Map<string, string>();
    for (const [name, [column, wrong]] of Object.entries(changes)) {
      const row = await fixture.store.version(versions.get(name) ?? 0);
      types.set(name, row?.mime_type ?? '');
      await change(`UPDATE versions SET ${column} = ? WHERE id = ?`, wrong, versions.get(name) ?? 0);
    }
    await change("UPDATE objects SET name = 'sounds' WHERE object_id = ?", sound.object_id);
    const { damaged, rows } = await scrub();
    assert.deepEqual([damaged, rows], [[...Object.keys(changes), 'sounds'].sort(), 6]);
    assert.match(fixture.alarms.list()[0]?.detail ?? '', /^the metadata of 6 object versions are damaged/);
    for (const [name, [column, , right]] of Object.entries(changes)) {
      const value = column === 'mime_type' ? (types.get(name) ?? '') : right;
      await change(`UPDATE versions SET ${column} = ? WHERE id = ?`, value, versions.get(name) ?? 0);
    }
    await change("UPDATE objects SET name = 'sound' WHERE object_id = ?", sound.object_id);
    assert.deepEqual((await scrub()).damaged, []);
    assert.deepEqual(fixture.alarms.list(), []);
  });

  test('a damaged row is not served, and a reader who meets it has it marked', async () => {
    const { object_id } = await put('x');
    await change(`UPDATE versions SET metadata = '{"project":"noon"}'`);
    const reading = fixture.downloads.find(owner, object_id);
    await assert.rejects(reading, (error) => isAppError(error, 'data_corrupted'));
    assert.equal(damagedRows.length, 1);
    const scrubber = fixture.openScrubber();
    await scrubber.noteDamagedRow(damagedRows[0] ?? 0);
    assert.deepEqual([(await scrubber.status()).damaged_rows, fixture.alarms.list().length], [1, 1]);
  });

  for (const [what, flip] of Object.entries(FLIPPED_LINKS)) {
    test(`a row id that names what belongs to another is found: ${what}`, async () => {
      const ids = [];
      for (const name of ['mine', 'hers', 'other']) ids.push((await put(name)).object_id);
      const [mine = '', hers = ''] = ids;
      assert.deepEqual((await scrub()).damaged, []);
      const isServed = flip === FLIPPED_LINKS['bytes of the same size'];
      await change(flip);
      const reading = fixture.downloads.find(owner, mine);
      // Only the sum of all rows with these bytes shows it: that of the scrub.
      if (isServed) await reading;
      else await assert.rejects(reading, (error) => isAppError(error, 'data_corrupted'));
      const { damaged } = await scrub();
      assert.ok(damaged.includes('mine'), JSON.stringify(damaged));
      assert.equal((await fixture.downloads.find(owner, hers)).name, 'hers');
    });
  }

  test('rows of an earlier version are served, and get their checksums from the scrub', async () => {
    const { object_id } = await put('old');
    const version = await versionOf(object_id);
    await setFacts(version, { tags: '{"a":"b"}' });
    await change('UPDATE versions SET row_crc = NULL, tags_crc = NULL');
    await change('UPDATE objects SET row_crc = NULL');
    assert.equal((await fixture.downloads.find(owner, object_id)).name, 'old');
    assert.deepEqual((await scrub()).damaged, []);
    await change(`UPDATE versions SET tags = '{"a":"c"}'`);
    assert.deepEqual((await scrub()).damaged, ['old']);
  });

  test('lists show what versions say, also of rows that code before listed objects wrote', async () => {
    const { store, removals } = fixture;
    const { id: bucket } =
      (await fixture.buckets.named(owner.accountId, 'plain')) ?? assert.fail('no bucket');
    const all = { name: '', after: false };
    const isRight = async (count: number) => {
      const rows = await store.listedEntries(bucket, all, 10);
      const live = await store.liveEntries(bucket, all, 10);
      const shown = (row: (typeof live)[number]) => {
        const { name, size_bytes, created_at, etag, storage_class } = row;
        return { name, size_bytes, created_at, etag, storage_class, checksum: null };
      };
      assert.deepEqual(rows, live.map(shown));
      assert.equal(rows.length, count);
    };
    const listed = () =>
      fixture.metadata.all('SELECT name, listed = current AS is_listed, etag FROM objects ORDER BY name');
    const first = await put('a');
    await put('b');
    await isRight(2);
    const later = await fixture.put(owner, 'plain', { name: 'a', bytes: Buffer.from('later') });
    await isRight(2);
    await removals.remove(by(owner), first.object_id, { versionId: later.version_id });
    await isRight(2);
    const sound = await listed();
    // Code without support for lists makes another version current, or none.
    await change("UPDATE objects SET listed = NULL, etag = NULL, storage_class = NULL WHERE name = 'b'");
    await fixture.put(owner, 'plain', { name: 'a', bytes: Buffer.from('again') });
    await change("UPDATE objects SET listed = 1, etag = 'of-another' WHERE name = 'a'");
    await isRight(2);
    assert.deepEqual((await scrub()).damaged, []);
    await isRight(2);
    await change(
      "UPDATE objects SET etag = 'flipped', storage_class = 'GLACIER', checksum_kind = 'X Y' WHERE name = 'b'",
    );
    assert.deepEqual((await scrub()).damaged, []);
    await isRight(2);
    assert.deepEqual((await listed())[1], sound[1]);
    await removals.remove(by(owner), first.object_id);
    await isRight(1);
  });

  bucketChecks();
}

function bucketChecks(): void {
  const settings = () => fixture.metadata.get("SELECT name, settings FROM buckets WHERE name <> 'other'");
  const isDamaged = (error: unknown) => isAppError(error, 'data_corrupted');
  const report = async () => {
    const scrubber = fixture.openScrubber();
    await scrubber.run(RUN);
    return [
      (await scrubber.bucketDamage()).map(({ bucket }) => bucket),
      (await scrubber.status()).checked_buckets,
    ];
  };

  test('a bucket is sound after each change of it', async () => {
    const { buckets } = fixture;
    await buckets.change(by(owner), 'plain', { encryption: true });
    await buckets.configure(by(owner), 'plain', ['tags', { a: 'b' }]);
    await buckets.change(by(owner), 'plain', { versioning: false, encryption: false });
    await buckets.create(by(owner), { name: 'other', settings: { tags: { x: 'y' } } });
    await put('a');
    assert.deepEqual(await report(), [[], 2]);
    assert.equal((await buckets.describe(owner, 'other')).encryption, false);
    const missing = 'SELECT name FROM buckets WHERE row_crc IS NULL OR settings_crc IS NULL';
    assert.deepEqual(await fixture.metadata.all(missing), []);
  });

  for (const [what, flipped] of Object.entries(FLIPS)) {
    test(`a flipped bit in a bucket is found and refused, and its objects can be saved: ${what}`, async () => {
      const { buckets, listing, downloads, bucketEmptier } = fixture;
      const { object_id } = await put('a');
      await buckets.configure(by(owner), 'plain', ['tags', { a: 'b' }]);
      await buckets.create(by(owner), { name: 'other' });
      const column = what.split(' ', 1)[0];
      await change(`UPDATE buckets SET ${column} = ${flipped} WHERE name = 'plain'`);
      const { name } = (await settings()) as { name: string };
      await assert.rejects(buckets.describe(owner, name), isDamaged);
      await assert.rejects(buckets.named(owner.accountId, name), isDamaged);
      await assert.rejects(buckets.named(0, 'plain'), isDamaged);
      await assert.rejects(buckets.ofAccount(String(owner.accountId), name), isDamaged);
      await assert.rejects(buckets.configure(by(owner), name, ['tags', { a: 'd' }]), isDamaged);
      await assert.rejects(buckets.change(by(owner), name, { encryption: true }), isDamaged);
      await assert.rejects(fixture.put(owner, name, { name: 'b', bytes: Buffer.from('b') }), isDamaged);
      await assert.rejects(fixture.removals.remove(by(owner), object_id), isDamaged);
      await Promise.all(noted);
      assert.match(fixture.alarms.list()[0]?.detail ?? '', /^the settings of 1 buckets are damaged/);
      assert.deepEqual(await report(), [[name], 2]);
      const { entries } = await listing.page(owner, name, { prefix: '', limit: 10, versions: false });
      assert.deepEqual(
        entries.map((entry) => entry.name),
        ['a'],
      );
      assert.equal((await downloads.find(owner, object_id)).sizeBytes, 1);
      const names: string[] = [];
      for await (const item of buckets.list(owner, 0, 10)) names.push(item.row.name);
      assert.deepEqual(names, [name, 'other']);
      await bucketEmptier.remove(by(owner), name);
      assert.deepEqual(await report(), [[], 1]);
      assert.deepEqual(fixture.alarms.list(), []);
    });
  }

  test('a bucket of an earlier version goes on, and gets its checksums from the scrub', async () => {
    await change('UPDATE buckets SET row_crc = NULL, settings_crc = NULL');
    assert.equal((await fixture.buckets.describe(owner, 'plain')).versioning, true);
    assert.deepEqual(await report(), [[], 1]);
    await change('UPDATE buckets SET versioning = 0');
    assert.deepEqual(await report(), [['plain'], 1]);
    await change('UPDATE buckets SET versioning = 1');
    assert.deepEqual(await report(), [[], 1]);
  });
}
