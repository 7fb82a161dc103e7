/** The operator's own MongoDB: the requests to it, and the messages about it. With a stand-in. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { serialize } from 'bson';
import { Decimal128, Double, Long, MongoClient } from 'mongodb';
import { ArchiveWriter, metadataOf } from '../../../../../libs/mongo/index.ts';
import { LoadFailed, type Query, QueryFailed } from '../../../../databases/engine.ts';
import { LeftOut } from '../../../../databases/left-out.ts';
import { isAppError } from '../../../../platform/errors.ts';
import { eventually } from '../../../../testing/eventually.ts';
import { newDatabase } from '../../../../testing/new-database.ts';
import { OperatorMongodb } from '../../../../testing/operator-mongodb.ts';
import { externalMongodb } from './choice.ts';
import { operatorDeployment } from './deployment.ts';
import { unmetNeed } from './operator-mongodb.ts';
import { ServerMongodb } from './server-engine.ts';

const STAYS = new AbortController().signal;
const QUERY = { params: [], readOnly: true, maxRows: 10, maxBytes: 2 ** 20, timeoutMs: 8000, signal: STAYS };

describe("the operator's MongoDB", () => {
  let server: OperatorMongodb;
  before(async () => {
    server = await OperatorMongodb.start();
  });
  after(() => server.close());

  type Context = { after(work: () => Promise<void>): void };

  async function cloud(t: Context, url = server.url()) {
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-mongodb-'));
    const alarms = new Map<string, string>();
    const address = externalMongodb({ mongodbUrl: url });
    assert.ok(address);
    const deployment = operatorDeployment({
      folder,
      address,
      alarms: { raise: (code, detail) => alarms.set(code, detail), clear: (code) => alarms.delete(code) },
    });
    const engine = new ServerMongodb({ folder, deployment });
    t.after(async () => {
      await engine.close();
      rmSync(folder, { recursive: true, force: true });
    });
    const connect = async (uri: string) => {
      const client = new MongoClient(uri, { serverSelectionTimeoutMS: 2000 });
      t.after(() => client.close(true));
      return client.connect();
    };
    /** A database with its address and a driver in it. */
    const make = async (password = 'secret') => {
      const database = newDatabase();
      await engine.provision(database, password);
      const { uri } = await engine.endpoint(database);
      return { database, uri, client: await connect(uri(password)) };
    };
    return { engine, alarms, connect, make };
  }

  const query = (statement: Query['statement'], more: Partial<Query> = {}): Query => ({
    ...QUERY,
    statement,
    ...more,
  });

  test('databases are made, seen by their own users alone, listed, and dropped', async (t) => {
    const { engine, make } = await cloud(t);
    const [one, other] = [await make(), await make()];
    await engine.provision(one.database, 'secret');
    await one.client.db().collection('notes').insertOne({ a: 1 });
    const theirs = one.client.db(other.database.database).collection('notes');
    await assert.rejects(theirs.find().toArray(), { code: 13 });
    const { available, source, reason } = await engine.readiness();
    assert.deepEqual([available, source], [true, 'external']);
    assert.match(`${reason}`, /does not limit.*JavaScript.*not a replica set/);
    assert.deepEqual(
      (await engine.list()).toSorted(),
      [one, other].map((each) => each.database.database).toSorted(),
    );
    assert.ok((await engine.measure(one.database)).sizeBytes > 0);
    await engine.drop(one.database.database);
    await engine.drop(one.database.database);
    assert.deepEqual(await engine.list(), [other.database.database]);
    await assert.rejects(one.client.db().collection('notes').find().toArray(), { code: 13 });
  });

  test('another cloud on the same server sees nothing of them', async (t) => {
    const [one, other] = [await cloud(t), await cloud(t)];
    const { database } = await one.make();
    assert.ok((await one.engine.list()).includes(database.database));
    assert.ok(!(await other.engine.list()).includes(database.database));
  });

  test('a new password ends sessions of the old one', async (t) => {
    const { engine, connect, make } = await cloud(t);
    const { database, uri, client } = await make('old');
    await engine.rotate(database, 'new');
    await engine.rotate(database, 'new');
    await assert.rejects(client.db().collection('notes').find().toArray(), { code: 13 });
    await assert.rejects(connect(uri('old')), { code: 18 });
    await (await connect(uri('new'))).db().collection('notes').insertOne({});
  });

  test('read only deletes, no access does nothing and lets nobody in, full writes again', async (t) => {
    const { engine, connect, make } = await cloud(t);
    const { database, uri, client } = await make();
    const notes = client.db().collection('notes');
    await notes.insertMany([{ a: 1 }, { a: 2 }]);
    await engine.restrict(database, 'read_only');
    await assert.rejects(notes.insertOne({}), { code: 13 });
    await assert.rejects(
      engine.query(database, query({ insert: 'notes', documents: [{}] }, { readOnly: false })),
      QueryFailed,
    );
    assert.equal((await notes.deleteOne({ a: 1 })).deletedCount, 1);
    await engine.restrict(database, 'none');
    await assert.rejects(notes.find().toArray(), { code: 13 });
    await assert.rejects(connect(uri('secret')), { code: 18 });
    await engine.restrict(database, 'full');
    await (await connect(uri('secret'))).db().collection('notes').insertOne({ a: 3 });
    assert.equal(await notes.countDocuments(), 2);
  });

  test('queries run by users that may do no more than their kind', async (t) => {
    const { engine, make } = await cloud(t);
    const { database, client } = await make();
    await client
      .db()
      .collection('notes')
      .insertMany([{ _id: 1 as never, n: Long.MAX_VALUE }, { n: 2 }]);
    const found = await engine.query(database, query({ find: 'notes', sort: { _id: 1 } }, { maxRows: 1 }));
    assert.deepEqual(
      [found.rows.toJSON(), found.truncated],
      [[[1, { $numberLong: '9223372036854775807' }]], true],
    );
    const addNote = { insert: 'notes', documents: [{ note: 'by query' }] };
    await assert.rejects(engine.query(database, query(addNote)), {
      name: 'QueryFailed',
      engineCode: 'Unauthorized',
    });
    assert.equal((await engine.query(database, query(addNote, { readOnly: false }))).affected, 1);
    await assert.rejects(engine.query(database, query({ find: 'notes', filter: { $no: 1 } })), QueryFailed);
    const [table] = (await engine.tables(database, STAYS)).toJSON();
    assert.deepEqual([table?.name, table?.estimated_rows], ['notes', 3]);
    const { database: db, username: user } = database;
    const about = { active: true, effectiveUsers: [{ user, db }] };
    server.running.push({ opid: 7, secs_running: 3600, ...about }, { opid: 8, secs_running: 1, ...about });
    await eventually(() => engine.takeActive().includes(database.databaseId));
    const killed = server.asked.filter(({ killOp }) => killOp === 1).map(({ op }) => op);
    assert.deepEqual([...new Set(killed)], [7]);
    server.running.length = 0;
  });

  test('an archive brings types and indexes; a broken one changes nothing', async (t) => {
    const { engine, make } = await cloud(t);
    const [source, target] = [await make(), await make()];
    const before = [
      { _id: 1 as never, d: Decimal128.fromString('1.50'), l: Long.fromNumber(1), f: new Double(1) },
    ];
    await source.client.db().collection('notes').insertMany(before);
    await source.client.db().collection('notes').createIndex({ l: 1 }, { unique: true });
    await target.client.db().collection('goes').insertOne({});
    const dump = await buffer((await engine.dump(source.database, 'archive', { signal: STAYS })).stream);
    const cut = engine.load(target.database, Readable.from([dump.subarray(0, -20)]), { signal: STAYS });
    await assert.rejects(cut, LoadFailed);
    const namesOf = async () =>
      (await engine.tables(target.database, STAYS)).toJSON().map(({ name }) => name);
    assert.deepEqual(await namesOf(), ['goes']);
    for (let time = 0; time < 2; time++)
      await engine.load(target.database, Readable.from([dump]), { signal: STAYS });
    assert.deepEqual(await namesOf(), ['notes']);
    const notes = target.client.db().collection('notes');
    const exact = { promoteValues: false };
    assert.deepEqual(
      await notes.find({}, exact).toArray(),
      await source.client.db().collection('notes').find({}, exact).toArray(),
    );
    assert.ok((await notes.indexes()).some(({ key, unique }) => key.l === 1 && unique === true));
    const copy = await make();
    await engine.fork(source.database, copy.database, STAYS);
    assert.equal(await copy.client.db().collection('notes').countDocuments(), 1);
  });

  test('an archive of an old version is taken without its options, and tells; strictly it is refused', async (t) => {
    const { engine, make } = await cloud(t);
    const { database, client } = await make();
    const [db, collection] = ['old', 'notes'];
    const options = { flags: 1, validator: { n: { $gte: 0 } } };
    const indexes = [
      { v: 2, key: { _id: 1 }, name: '_id_' },
      { v: 1, key: { n: 1 }, name: 'n', unique: true, dropDups: true, ns: 'old.notes' },
      { v: 2, key: { p: 'geoHaystack' }, name: 'gone' },
    ];
    const writer = new ArchiveWriter();
    const metadata = metadataOf(collection, { type: 'collection', options, indexes });
    const archive = Buffer.concat([
      writer.head('3.6.0', [{ db, collection, metadata }]),
      writer.documents(db, collection, [serialize({ _id: 1, n: 1 })]),
      writer.endOf(db, collection),
    ]);
    const load = (leftOut?: LeftOut) =>
      engine.load(database, Readable.from([archive]), { signal: STAYS, leftOut });
    await assert.rejects(load(), LoadFailed);
    const leftOut = new LeftOut();
    await load(leftOut);
    assert.deepEqual(
      leftOut.notes.map(({ text }) => text),
      ['notes: flags', 'index n of notes: dropDups', 'index gone of notes'],
    );
    const notes = client.db().collection('notes');
    assert.equal(await notes.countDocuments(), 1);
    assert.deepEqual(
      (await notes.indexes()).map(({ name, unique = false }) => [name, unique]),
      [
        ['_id_', false],
        ['n', true],
      ],
    );
    await assert.rejects(notes.insertOne({ n: -1 }), { code: 121 });
  });

  test('one that cannot be used says why and how to mend it, without its password', async (t) => {
    const expected = [
      [server.url('chief', 'not-the-right-one'), /refuses the user/, /correct user, password/],
      [server.url('weak'), /does not allow the user .* createUser/, /root, or userAdminAnyDatabase/],
      [
        'mongodb://u:not-the-right-one@127.0.0.1:1/',
        /127\.0\.0\.1:1 cannot be reached/,
        /start it, or correct/,
      ],
    ] as const;
    for (const [url, why, fix] of expected) {
      const { engine, alarms } = await cloud(t, url);
      await assert.rejects(engine.provision(newDatabase(), 'x'), (error) =>
        isAppError(error, 'engine_unavailable'),
      );
      const readiness = await engine.readiness();
      assert.equal(readiness.available, false);
      assert.match(`${readiness.reason}`, why);
      assert.match(`${readiness.fix}`, fix);
      assert.ok(alarms.has('mongodb_unavailable'));
      assert.ok(!JSON.stringify([readiness, [...alarms]]).includes('not-the-right-one'));
    }
  });

  test('one that is too old, sharded or open to all will not do', () => {
    const good = { version: '7.0.14', isSharded: false, missing: [], letsAnybodyIn: false };
    const setting = { setting: 'CLOUDLET_MONGODB_URL' };
    assert.equal(unmetNeed(good, setting), null);
    for (const bad of [
      { version: '4.4.1' },
      { isSharded: true },
      { letsAnybodyIn: true },
      { missing: ['find'] },
    ])
      assert.ok(isAppError(unmetNeed({ ...good, ...bad }, setting), 'engine_unavailable'));
  });

  test('beyond loopback it is reached by TLS, unless the URL says otherwise', () => {
    const read = (mongodbUrl: string) => externalMongodb({ mongodbUrl });
    assert.equal(read('mongodb://u:p@db.example/?replicaSet=rs0')?.tls, true);
    assert.equal(read('mongodb://u:p@db.example/?tls=false')?.tls, false);
    const { port, authSource, replicaSet, tls } = read('mongodb://u:p@[::1]/?replicaSet=rs0') ?? {};
    assert.deepEqual([port, authSource, replicaSet, tls], [27_017, 'admin', 'rs0', false]);
    assert.equal(read(''), null);
  });
});
