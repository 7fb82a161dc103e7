/** Archives of MongoDB databases: our own, and those that a tenant may send. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, describe, test } from 'node:test';
import { Binary, Decimal128, type Document, Double, Int32, Long, ObjectId, serialize, Timestamp } from 'bson';
import { ARCHIVE_MAGIC, ArchiveWriter, Crc64, metadataOf } from '../../../../../libs/mongo/index.ts';
import { type EngineDatabase, LoadFailed } from '../../../../databases/engine.ts';
import { LeftOut } from '../../../../databases/left-out.ts';
import { openMongodb } from '../../../../testing/mongodb-fixture.ts';

const NOBODY_LEAVES = new AbortController().signal;
const TERMINATOR = Buffer.alloc(4, 0xff);
const fixture = openMongodb({ firstPort: 27_600 });
after(() => fixture.close());

const load = (database: EngineDatabase, archive: Buffer) =>
  fixture.engine.load(database, Readable.from([archive]), { signal: NOBODY_LEAVES });
const dump = async (database: EngineDatabase) =>
  buffer((await fixture.engine.dump(database, 'archive', { signal: NOBODY_LEAVES })).stream);

/** In the format of mongodump: segments of collections in any order, and an end of each. */
function archiveOf(
  segments: readonly { db: string; collection: string; documents: Document[] }[],
  options: Document = {},
) {
  // The documents of a time series are those of another collection, and only that collection has an end.
  const isSeries = (collection: string) => options.type === 'timeseries' && !collection.startsWith('system.');
  const spaces = new Map(segments.map((one) => [`${one.db}.${one.collection}`, one]));
  const sums = new Map([...spaces.keys()].map((space) => [space, new Crc64()]));
  const pieces: Uint8Array[] = [ARCHIVE_MAGIC];
  pieces.push(
    serialize({ concurrent_collections: 4, version: '0.1', server_version: '8.0.4', tool_version: '100.9' }),
  );
  for (const { db, collection } of spaces.values()) {
    const metadata = JSON.stringify({
      indexes: [
        { v: { $numberInt: '2' }, key: { _id: { $numberInt: '1' } }, name: '_id_' },
        { v: { $numberInt: '2' }, key: { n: { $numberInt: '-1' } }, name: 'n_-1', unique: true },
      ],
      uuid: '00000000000000000000000000000000',
      collectionName: collection,
      type: 'collection',
      ...options,
    });
    pieces.push(serialize({ db, collection, metadata, size: 0, type: 'collection' }));
  }
  pieces.push(TERMINATOR);
  for (const { db, collection, documents } of segments) {
    if (isSeries(collection)) continue;
    const bytes = Buffer.concat(documents.map((document) => serialize(document)));
    sums.get(`${db}.${collection}`)?.add(bytes);
    pieces.push(serialize({ db, collection, EOF: false, CRC: Long.ZERO }), bytes, TERMINATOR);
  }
  for (const [space, { db, collection }] of spaces) {
    if (isSeries(collection)) continue;
    const crc = Long.fromBigInt(sums.get(space)?.value ?? 0n);
    pieces.push(serialize({ db, collection, EOF: true, CRC: crc }), TERMINATOR);
  }
  return Buffer.concat(pieces);
}

test('the checksum is the one that Go computes', () => {
  const sum = new Crc64();
  sum.add(Buffer.from('12345'));
  sum.add(Buffer.from('6789'));
  assert.equal(BigInt.asUintN(64, sum.value), 0x995dc9bbdf1939fan);
});

describe('an archive of ours', () => {
  test('has every type, every index, and collections without documents', async () => {
    const [{ database, uri }, { database: target, uri: other }] = [
      await fixture.make(),
      await fixture.make(),
    ];
    const from = (await fixture.connect(uri)).db();
    const document = {
      _id: new ObjectId(),
      n: 1,
      long: Long.fromString('9223372036854775807'),
      decimal: Decimal128.fromString('1.10'),
      bytes: new Binary(Buffer.from([1, 2, 3]), 4),
      when: new Date(0),
      stamp: new Timestamp({ t: 1, i: 2 }),
      pattern: /a+/i,
      nothing: null,
      list: [1, [2, { three: 3 }]],
    };
    await from.collection<Document>('every').insertOne(document);
    await from.collection('every').createIndex({ n: 1, long: -1 }, { unique: true, name: 'own' });
    await from.createCollection('empty');
    await load(target, await dump(database));
    const to = (await fixture.connect(other)).db();
    const raw = { promoteValues: false, promoteLongs: false };
    assert.deepEqual(
      await to.collection('every').findOne({}, raw),
      await from.collection('every').findOne({}, raw),
    );
    const { key, unique } = (await to.collection('every').indexes()).find(({ name }) => name === 'own') ?? {};
    assert.deepEqual([key, unique], [{ n: 1, long: -1 }, true]);
    const names = (await to.listCollections().toArray()).map(({ name }) => name);
    assert.deepEqual(names.sort(), ['empty', 'every']);
  });

  test('of many documents is as many, and replaces all there was', async () => {
    const [{ database, uri }, { database: target, uri: other }] = [
      await fixture.make(),
      await fixture.make(),
    ];
    const documents = Array.from({ length: 5000 }, (_, n) => ({ n, text: 'x'.repeat(n % 300) }));
    await (await fixture.connect(uri)).db().collection('many').insertMany(documents);
    const to = (await fixture.connect(other)).db();
    await to.collection('old').insertOne({ old: true });
    await load(target, await dump(database));
    assert.equal(await to.collection('many').countDocuments({ n: { $gte: 0 } }), 5000);
    assert.deepEqual(
      (await to.listCollections().toArray()).map(({ name }) => name),
      ['many'],
    );
  });
});

describe('an archive of mongodump', () => {
  const SEGMENTS = [
    { db: 'shop', collection: 'one', documents: [{ _id: 1, n: 1 }] },
    { db: 'admin', collection: 'system.version', documents: [{ _id: 'authSchema' }] },
    { db: 'shop', collection: 'other', documents: [{ _id: 1, n: 1 }] },
    { db: 'shop', collection: 'one', documents: [{ _id: 2, n: 2 }] },
  ];

  test('of several collections in turn is taken, without what is the server’s', async () => {
    const { database, uri } = await fixture.make();
    await load(database, archiveOf(SEGMENTS));
    const there = (await fixture.connect(uri)).db();
    assert.deepEqual(await there.collection('one').find().sort({ n: 1 }).toArray(), [
      { _id: 1, n: 1 },
      { _id: 2, n: 2 },
    ]);
    await assert.rejects(there.collection<Document>('one').insertOne({ n: 2 }), { code: 11000 });
    const names = (await there.listCollections().toArray()).map(({ name }) => name);
    assert.deepEqual(names.sort(), ['one', 'other']);
  });

  test('of one database is that, whatever its name; beside it there may be those for tests', async () => {
    const { database, uri } = await fixture.make();
    const client = await fixture.connect(uri);
    await load(database, archiveOf([{ db: 'shop_test', collection: 'one', documents: [{ n: 1 }] }]));
    assert.equal(await client.db().collection('one').countDocuments(), 1);
    assert.deepEqual(await fixture.engine.testDatabases(database), []);
    const beside = { db: 'test', collection: 'one', documents: [{ n: 2 }, { n: 3 }] };
    await load(database, archiveOf([beside, ...SEGMENTS]));
    assert.equal(await client.db('test').collection('one').countDocuments(), 2);
    assert.equal(await client.db().collection('one').countDocuments(), 2);
    const tests = archiveOf([beside, { ...beside, db: 'other_test' }]);
    await assert.rejects(
      load(database, tests),
      /more than one database: test and other_test; make an archive/,
    );
  });

  test('has indexes in binary order in a collection with another, and comes back the same', async () => {
    const { database, uri } = await fixture.make();
    const collation = { locale: 'en', strength: { $numberInt: '2' } };
    const documents = [
      { _id: 1, n: 'a', t: 'quick foxes' },
      { _id: 2, n: 'A', t: 'dogs' },
    ];
    const archive = archiveOf([{ db: 'shop', collection: 'one', documents }], {
      options: { collation },
      indexes: [
        { v: 2, key: { _id: 1 }, name: '_id_', collation },
        { v: 2, key: { n: 1 }, name: 'n_1', unique: true },
        { v: 2, key: { n: -1 }, name: 'n_-1', collation },
        { v: 2, key: { _fts: 'text', _ftsx: 1 }, name: 't_text', weights: { t: { $numberInt: '1' } } },
      ],
    });
    const check = async () => {
      const one = (await fixture.connect(uri)).db().collection<{ _id: number; n: string }>('one');
      const orders = (await one.indexes()).map(({ name, collation: of }) => [name, of?.strength]);
      assert.deepEqual(orders.toSorted(), [
        ['_id_', 2],
        ['n_-1', 2],
        ['n_1', undefined],
        ['t_text', undefined],
      ]);
      assert.equal(await one.countDocuments({ n: 'A' }), 2);
      assert.equal(
        await one.countDocuments({ $text: { $search: 'fox' } }, { collation: { locale: 'simple' } }),
        1,
      );
      await assert.rejects(one.insertOne({ _id: 3, n: 'A' }), { code: 11_000 });
    };
    await load(database, archive);
    await check();
    await load(database, await dump(database));
    await check();
  });

  test('with a time series is taken without that, and tells', async () => {
    const { database, uri } = await fixture.make();
    const segments = [
      { db: 'shop', collection: 'ts', documents: [] },
      { db: 'shop', collection: 'system.buckets.ts', documents: [{ control: { version: 1 } }] },
    ];
    const options = { timeseries: { timeField: 't', granularity: 'seconds' } };
    const archive = archiveOf(segments, { type: 'timeseries', options });
    await assert.rejects(load(database, archive), /timeseries/);
    const leftOut = new LeftOut();
    await fixture.engine.load(database, Readable.from([archive]), {
      signal: NOBODY_LEAVES,
      leftOut,
    });
    assert.deepEqual(
      leftOut.notes.map(({ text }) => text),
      ['ts: timeseries'],
    );
    assert.deepEqual(await (await fixture.connect(uri)).db().listCollections().toArray(), []);
  });

  test('with options that this engine lacks is taken without them, and tells; strictly it is refused', async () => {
    const { database, uri } = await fixture.make();
    const key = { n: { $numberInt: '1' } };
    const archive = archiveOf([{ db: 'shop', collection: 'one', documents: [{ n: 1 }, { n: 2 }] }], {
      options: {
        flags: { $numberInt: '1' },
        storageEngine: {},
        autoIndexId: true,
        validator: { n: { $gte: 0 } },
      },
      indexes: [
        {
          v: { $numberInt: '1' },
          key,
          name: 'old',
          unique: true,
          dropDups: true,
          storageEngine: {},
          ns: 'shop.one',
        },
        { v: { $numberInt: '2' }, key: { n: 'geoHaystack' }, name: 'gone', bucketSize: { $numberInt: '1' } },
      ],
    });
    await assert.rejects(load(database, archive), LoadFailed);
    const leftOut = new LeftOut();
    const packed = Readable.from([archive]);
    await fixture.engine.load(database, packed, { signal: NOBODY_LEAVES, leftOut });
    const texts = leftOut.notes.map(({ text }) => text);
    assert.deepEqual(texts, [
      'one: flags',
      'index old of one: dropDups',
      'index old of one: storageEngine',
      'index gone of one',
    ]);
    const one = (await fixture.connect(uri)).db().collection('one');
    assert.equal(await one.countDocuments(), 2);
    assert.deepEqual(
      (await one.indexes()).map(({ name, unique = false }) => [name, unique]),
      [
        ['_id_', false],
        ['old', true],
      ],
    );
    await assert.rejects(one.insertOne({ n: -1 }), { code: 121 });
  });

  test('with what only other servers take keeps its documents, and tells; strictly it is refused', async () => {
    const writer = new ArchiveWriter();
    const db = 'shop';
    const int = (value: number) => new Int32(value);
    const key = (name: string, value: unknown) => ({ v: int(1), key: { [name]: value }, name });
    const legacy = [
      key('a', true),
      key('b', ''),
      key('c', int(0)),
      key('d', new Double(-1)),
      key('e', 'odd'),
    ];
    const about = [
      { name: 'early', type: 'view', options: { viewOn: 'seen', pipeline: [] }, indexes: [] },
      { name: 'goods', type: 'collection', options: { validator: { n: { $gte: 0 } } }, indexes: legacy },
      { name: 'ring', type: 'collection', options: { capped: true, max: int(5) }, indexes: [] },
      { name: 'seen', type: 'view', options: { viewOn: 'goods', pipeline: [{ $match: {} }] }, indexes: [] },
      {
        name: 'odd',
        type: 'view',
        options: { viewOn: 'goods', pipeline: [{ $redact: '$$KEEP' }] },
        indexes: [],
      },
    ];
    const head = about.map(({ name, ...more }) => ({
      db,
      collection: name,
      type: more.type,
      metadata: metadataOf(name, more),
    }));
    const archive = Buffer.concat([
      writer.head('3.2.0', head),
      ...['goods', 'ring'].flatMap((name) => [
        writer.documents(db, name, [serialize({ n: -1 }), serialize({ n: 1 })]),
        writer.endOf(db, name),
      ]),
    ]);
    const { database, uri } = await fixture.make();
    await assert.rejects(load(database, archive), LoadFailed);
    const leftOut = new LeftOut();
    await fixture.engine.load(database, Readable.from([archive]), { signal: NOBODY_LEAVES, leftOut });
    assert.deepEqual(
      leftOut.notes.map(({ text }) => text),
      [
        'ring: capped, max',
        'view odd',
        ...['a', 'b', 'c'].map((name) => `index ${name} of goods: key`),
        'index e of goods',
      ],
    );
    const own = (await fixture.connect(uri)).db();
    for (const name of ['goods', 'ring', 'seen', 'early'])
      assert.equal(await own.collection(name).countDocuments(), 2, name);
    await assert.rejects(own.collection('goods').insertOne({ n: -1 }), { code: 121 });
    const keys = (await own.collection('goods').indexes()).map((index) => index.key);
    assert.deepEqual(keys, [{ _id: 1 }, { a: 1 }, { b: 1 }, { c: 1 }, { d: -1 }]);
  });

  const refused: Readonly<Record<string, [Buffer, RegExp]>> = {
    'two databases': [
      archiveOf([...SEGMENTS, { db: 'two', collection: 'a', documents: [] }]),
      /more than one/,
    ],
    'a unique index that does not hold': [
      archiveOf([{ db: 'shop', collection: 'one', documents: [{ n: 1 }, { n: 1 }] }]),
      /E11000/,
    ],
    'a checksum that is wrong': [
      Buffer.from(archiveOf(SEGMENTS).toString('latin1').replace('\x10n\0\x01', '\x10n\0\x07'), 'latin1'),
      /checksum/,
    ],
    'metadata that is no JSON': [
      Buffer.from(archiveOf(SEGMENTS).toString('latin1').replaceAll('"indexes"', '"indexes!'), 'latin1'),
      /cannot be read/,
    ],
    'an end that is missing': [archiveOf(SEGMENTS).subarray(0, -60), /archive is truncated/],
    'an end in the middle of a length': [archiveOf(SEGMENTS).subarray(0, -2), /archive is truncated/],
    'a document of a length that is wrong': [
      Buffer.concat([archiveOf([]), Buffer.from('ffffff7f00', 'hex')]),
      /document of 2147483647 bytes/,
    ],
  };
  for (const [what, [archive, why]] of Object.entries(refused)) {
    test(`is refused, and changes nothing: ${what}`, async () => {
      const { database, uri } = await fixture.make();
      const notes = (await fixture.connect(uri)).db().collection('notes');
      await notes.insertOne({ kept: true });
      await assert.rejects(load(database, archive), (error) => {
        assert.ok(error instanceof LoadFailed, String(error));
        assert.match(error.message, why);
        return true;
      });
      assert.equal(await notes.countDocuments(), 1);
    });
  }
});
