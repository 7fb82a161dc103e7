/** Cloudlet is killed between every two steps of each call about a database, and started again. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import type { Call } from '../calls/principal.ts';
import {
  type DatabaseCloud,
  type DatabaseFixture,
  openDatabaseFixture,
  TEST_DATABASE_GRACE_MS,
  TEST_KEEP_MS,
} from '../testing/database-fixture.ts';
import { Fuse } from '../testing/fuse.ts';

const ROWS = ['one', 'two'];
const LOADED = ['three'];
const DUMP = `scripted dump\n${LOADED.join('\n')}`;
const HOUR_MS = 3_600_000;

interface Scene {
  readonly fixture: DatabaseFixture;
  readonly cloud: DatabaseCloud;
  readonly ann: Call;
  /** The database that was created before; empty: there is none. */
  readonly id: string;
}

interface Action {
  /** Earlier calls: created, deleted (dropped), deleted without space for its dump. */
  readonly before?: 'made' | 'dropped' | 'undumped';
  readonly act: (scene: Scene) => Promise<unknown>;
  readonly steps: number;
}

const ACTIONS: Readonly<Record<string, Action>> = {
  create: { act: ({ cloud, ann }) => cloud.creation.create(ann, { name: 'shop' }), steps: 8 },
  fork: {
    before: 'made',
    act: ({ cloud, ann, id }) => cloud.creation.create(ann, { name: 'copy', from: { database_id: id } }),
    steps: 10,
  },
  rotate: { before: 'made', act: ({ cloud, ann, id }) => cloud.databases.rotate(ann, id), steps: 8 },
  'change of the limit': {
    before: 'made',
    act: ({ cloud, ann, id }) => cloud.databases.change(ann, id, { size_limit_mb: 7 }),
    steps: 6,
  },
  load: {
    before: 'made',
    act: ({ cloud, ann, id }) => cloud.dumps.load(ann.principal, id, stream()),
    steps: 2,
  },
  delete: { before: 'made', act: remove, steps: 16 },
  'end of a deletion': {
    before: 'dropped',
    act: async ({ fixture, cloud }) => {
      fixture.clock.advance(TEST_KEEP_MS + HOUR_MS);
      await cloud.supervisor.check();
    },
    steps: 6,
  },
  undelete: { before: 'dropped', act: undelete, steps: 18 },
  'undelete of one still in its engine': { before: 'undumped', act: undelete, steps: 6 },
};

function undelete({ cloud, ann, id }: Scene): Promise<unknown> {
  return cloud.deleter.undelete(ann, id, {});
}

async function remove({ cloud, ann, id }: Scene): Promise<void> {
  await cloud.deleter.remove(ann, id);
  await cloud.turns.idle();
}

function stream() {
  return { dump: Readable.from([Buffer.from(DUMP)]), signal: new AbortController().signal };
}

async function write(cloud: DatabaseCloud, ann: Call, id: string): Promise<void> {
  const signal = new AbortController().signal;
  for (const statement of ROWS) {
    await cloud.queries.run(ann.principal, id, { input: { statement, read_only: false }, signal });
  }
}

/** The rows that a driver reads with the credentials from the API. */
async function read({ fixture, cloud, ann }: Omit<Scene, 'id'>, id: string): Promise<readonly string[]> {
  const { connection } = await cloud.databases.credentials(ann.principal, id);
  return fixture.disk.read(connection.database, connection.password ?? '');
}

/** Invariants once everything was reconciled, whatever was interrupted. */
async function assertClean(scene: Omit<Scene, 'id'>, where: string): Promise<void> {
  const { fixture, cloud, ann } = scene;
  const live = await fixture.store.listOf(ann.principal.accountId, false, { after: 0, limit: 100 });
  const kept = await fixture.store.listOf(ann.principal.accountId, true, { after: 0, limit: 100 });
  for (const row of [...live, ...kept]) assert.equal(row.applied, row.generation, `${where}: settled`);
  const held = [...fixture.disk.databases.keys()].sort();
  assert.deepEqual(held, live.map((row) => row.engine_database).sort(), `${where}: the engine's side`);
  const keptIds = await fixture.store.withKeptDump();
  assert.deepEqual([...keptIds].sort(), kept.map((row) => row.database_id).sort(), `${where}: kept dumps`);
  assert.deepEqual([...(await cloud.kept.list())].sort(), [...keptIds].sort(), `${where}: their files`);
  for (const row of live) {
    assert.equal(row.state, 'ready', where);
    const rows = (await read(scene, row.database_id)).join();
    assert.ok([ROWS.join(), LOADED.join()].includes(rows) || row.name === 'shop', `${where}: ${rows}`);
    assert.equal(
      fixture.disk.databases.get(row.engine_database)?.sizeLimitBytes,
      row.size_limit_bytes,
      where,
    );
  }
  assert.equal(await fixture.counted(ann), live.length, `${where}: the quota`);
  const open = await fixture.metadata.all<{ id: string }>(
    `SELECT resource_id AS id FROM usage_lines WHERE meter = 'database.storage' AND is_closed = 0`,
  );
  const metered = open.map(({ id }) => id).sort();
  // Last dumps are charged like the data of a database.
  const charged = [...live.map((row) => row.database_id), ...keptIds].sort();
  assert.deepEqual(metered, charged, `${where}: meters`);
}

async function restart(fixture: DatabaseFixture): Promise<DatabaseCloud> {
  const cloud = await fixture.open();
  await cloud.supervisor.recover();
  const creating = await fixture.store.listCreating();
  assert.deepEqual(creating, [], 'no creation is left before anybody asks');
  await cloud.supervisor.check();
  await cloud.supervisor.sweepOrphans();
  fixture.clock.advance(TEST_DATABASE_GRACE_MS);
  await cloud.supervisor.sweepOrphans();
  return cloud;
}

async function prepare(fixture: DatabaseFixture, ann: Call, before: Action['before']): Promise<string> {
  if (before === undefined) return '';
  const full = () => assert.fail('no space');
  const cloud = await fixture.open(
    before === 'undumped' ? { assertSpace: (bytes) => void (bytes && full()) } : {},
  );
  const { database_id: id } = await cloud.creation.create(ann, { name: 'shop' });
  await write(cloud, ann, id);
  if (before !== 'made') await remove({ fixture, cloud, ann, id });
  return id;
}

/**
 * Runs the action with a kill at that step, then starts again. Returns false if the action had fewer steps.
 */
async function killAt(name: string, step: number): Promise<boolean> {
  const fixture = await openDatabaseFixture();
  const fuse = new Fuse();
  const where = `${name}, killed at step ${step}`;
  const { before, act } = ACTIONS[name] ?? assert.fail(name);
  try {
    const ann = await fixture.newCall('ann');
    const id = await prepare(fixture, ann, before);
    const cloud = await fixture.open({
      wrapMetadata: (metadata) => fuse.metadata(metadata),
      wrapEngine: (engine) =>
        fuse.calls(engine, ['prepare', 'provision', 'rotate', 'restrict', 'dump', 'load', 'fork', 'drop']),
      wrapKept: (kept) => fuse.calls(kept, ['keep', 'read', 'remove']),
    });
    fuse.left = step;
    const failure = await act({ fixture, cloud, ann, id }).then(
      () => undefined,
      (error: unknown) => error,
    );
    await cloud.turns.idle();
    if (!fuse.isBurnt) {
      assert.equal(failure, undefined, where);
      return false;
    }
    const after = await restart(fixture);
    await assertClean({ fixture, cloud: after, ann }, where);
    assert.deepEqual(after.reports, [], where);
    await assertKeptWhole({ fixture, cloud: after, ann, id }, where);
    return true;
  } finally {
    await fixture.close();
  }
}

/** The earlier content of the database is still in it, or in its last dump, or replaced as a whole. */
async function assertKeptWhole({ fixture, cloud, ann, id }: Scene, where: string): Promise<void> {
  const row = id === '' ? undefined : await fixture.store.find(id);
  if (row?.state === 'deleting') await cloud.deleter.undelete(ann, id, {});
  if (row !== undefined) {
    const rows = await read({ fixture, cloud, ann }, id);
    const expected = where.startsWith('load') && rows.length === 1 ? LOADED : ROWS;
    assert.deepEqual(rows, expected, `${where}: no row is lost`);
    await cloud.databases.change(ann, id, { name: 'old' });
  }
  // The name is free again, and a database with it is empty.
  const taken = await fixture.store.hasName(ann.principal.accountId, 'shop');
  if (taken) return;
  const { database_id: again } = await cloud.creation.create(ann, { name: 'shop' });
  assert.deepEqual(await read({ fixture, cloud, ann }, again), [], `${where}: a new one is empty`);
}

for (const [name, { steps }] of Object.entries(ACTIONS)) {
  test(`${name}: killed between every two steps`, async () => {
    let step = 1;
    while (await killAt(name, step)) step++;
    assert.equal(step - 1, steps, 'steps that were killed at');
  });
}
