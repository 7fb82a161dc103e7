/** Versions of one name that two nodes add and remove. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { Ages } from '../../metadata/ages.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock as clock } from '../../platform/clock.ts';
import { by } from '../../testing/account-fixture.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

const ages = (of: { monotonic(): number }) =>
  new Ages({ membership: { isShared: true, isCurrent: () => true }, clock: of });
const NAME = 'a';
const ROUNDS = 8;

describe('versions of one name at two nodes', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  let nodes: readonly [StorageFixture, StorageFixture];
  let owner: Principal;
  before(async () => {
    server = await operatorPostgresql();
    nodes = [await joined('nod-1'), await joined('nod-2')];
    owner = await nodes[0].newPrincipal('owner');
  });
  after(async () => {
    for (const node of nodes ?? []) await node.close();
    await server?.close();
  });

  const joined = (nodeId: string) =>
    openStorageFixture({
      ages,
      openMetadata: () =>
        PostgresqlMetadata.open({
          url: server.url('postgres', 'of-the-operator'),
          clock,
          alarms: new Alarms(clock),
          onTakenOver: assert.fail,
          node: { nodeId, name: nodeId, url: `http://${nodeId}:1`, version: '1', isHost: false },
        }),
    });

  let made = 0;
  async function newBucket(versioning = true) {
    const name = `bucket-${++made}`;
    await nodes[0].buckets.create(by(owner), { name, versioning });
    return nodes[0].buckets.find(owner, name);
  }

  const put = (node: StorageFixture, bucket: string, text: string) =>
    node.put(owner, bucket, { name: NAME, bytes: Buffer.from(text) });

  /** All versions and markers, newest first, as lists show them. */
  async function entries(bucketId: number) {
    const rows = await nodes[1].store.allEntries(bucketId, { name: '', after: false }, 1000);
    return rows.map(({ version_id, is_latest, blob }) => ({
      id: version_id,
      is_latest,
      isMarker: blob === null,
    }));
  }

  async function liveText(bucketId: number): Promise<string | null> {
    const bucket = await nodes[0].buckets.find(owner, `bucket-${made}`);
    assert.equal(bucket.id, bucketId);
    const found = await nodes[0].downloads.findNamed(owner, bucket, { name: NAME });
    if (found === undefined || !('content' in found)) return null;
    return Buffer.from(found.content.inline ?? []).toString('utf8');
  }

  test('they are in the order in which they were stored, and the last one is current', async () => {
    const { id, name } = await newBucket();
    const stored: string[] = [];
    for (let i = 0; i < 8; i++) {
      const node = nodes[(i + 1) % 2] as StorageFixture;
      stored.unshift((await put(node, name, `text ${i}`)).version_id ?? '');
    }
    const listed = await entries(id);
    assert.deepEqual(
      listed.map((entry) => entry.id),
      stored,
    );
    assert.deepEqual(
      listed.map(({ is_latest }) => is_latest),
      [1, 0, 0, 0, 0, 0, 0, 0],
    );
    // Each removal makes the one before it current.
    for (let i = 7; i > 0; i--) {
      assert.equal(await liveText(id), `text ${i}`);
      const node = nodes[i % 2] as StorageFixture;
      await node.removals.removeNamed(by(owner), name, { name: NAME, versionId: stored[7 - i] });
    }
    assert.equal(await liveText(id), 'text 0');
  });

  test('removed at both at once, each is gone, and nothing is left of the name', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { id, name } = await newBucket();
      const ids: string[] = [];
      for (let i = 0; i < 4; i++) ids.push((await put(nodes[0], name, `text ${i}`)).version_id ?? '');
      const removals = ids.map((versionId, i) =>
        (nodes[i % 2] as StorageFixture).removals.removeNamed(by(owner), name, { name: NAME, versionId }),
      );
      await Promise.all(removals);
      assert.deepEqual(await entries(id), []);
      const { object_count, size, version_count, total_size } = await nodes[1].buckets.describe(owner, name);
      assert.deepEqual({ object_count, size, version_count, total_size }, NOTHING);
      await nodes[1].buckets.removeEmpty(by(owner), name);
    }
  });

  test('markers, versions and removals at once leave the newest one current', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { id, name } = await newBucket();
      await put(nodes[0], name, 'first');
      const marked = await nodes[0].removals.removeNamed(by(owner), name, { name: NAME });
      const versionId = marked?.answer.version_id ?? '';
      await Promise.allSettled([
        nodes[0].removals.removeNamed(by(owner), name, { name: NAME, versionId }),
        nodes[1].removals.removeNamed(by(owner), name, { name: NAME }),
        nodes[round % 2]?.removals.removeNamed(by(owner), name, { name: NAME }),
      ]);
      await assertNewestIsCurrent(id);
      await Promise.allSettled([
        put(nodes[round % 2] as StorageFixture, name, 'second'),
        nodes[1].removals.removeNamed(by(owner), name, { name: NAME }),
      ]);
      await assertNewestIsCurrent(id);
    }
  });

  async function assertNewestIsCurrent(bucketId: number): Promise<void> {
    const object = await nodes[0].store.named(bucketId, NAME);
    if (object === undefined) return;
    const newest = await nodes[0].store.newestVersion(object.id, 0);
    assert.equal(object.current, newest?.blob === null ? null : newest?.id);
  }

  test('with versioning suspended, there is one null version', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { id, name } = await newBucket();
      await put(nodes[0], name, 'kept');
      await nodes[0].buckets.change(by(owner), name, { versioning: false });
      await nodes[0].buckets.change(by(owner), name, { versioning: true });
      await nodes[0].removals.removeNamed(by(owner), name, { name: NAME });
      await nodes[0].buckets.change(by(owner), name, { versioning: false });
      await Promise.all(nodes.map((node) => node.removals.removeNamed(by(owner), name, { name: NAME })));
      const object = await nodes[0].store.named(id, NAME);
      const all = await nodes[0].store.oldestVersions(object?.id ?? 0, 100);
      assert.equal(all.filter(({ is_null }) => is_null === 1).length, 1);
      await assertNewestIsCurrent(id);
    }
  });
});

const NOTHING = { object_count: 0, size: 0, version_count: 0, total_size: 0 };
