import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BSONRegExp, Decimal128, Double, Long, ObjectId, serialize } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';
import { decodeCommand } from '../values/bson-documents.ts';

describe('inserting and finding', () => {
  test('keeps documents as they came, with their types', (t) => {
    const documents = new TestDocuments(t);
    const kept = {
      _id: 1,
      double: new Double(5),
      long: Long.fromNumber(3),
      decimal: Decimal128.fromString('1.10'),
    };
    documents.insert('things', kept);
    const [found] = documents.ask({ find: 'things' }, { exact: true }).cursor.firstBatch;
    assert.deepEqual(serialize(found), serialize(kept));
  });

  test('an _id is made where there is none, and comes first', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('things', { name: 'a' }, { name: 'b', _id: 7 });
    const [first, second] = documents.find('things');
    assert.ok(first?._id instanceof ObjectId);
    assert.deepEqual(Object.keys(second ?? {}), ['_id', 'name']);
  });

  test('a duplicate is reported with its key; unordered inserts go on', (t) => {
    const documents = new TestDocuments(t);
    const reply = documents.ask({
      insert: 'things',
      documents: [{ _id: 1 }, { _id: new Double(1) }, { _id: 2 }],
      ordered: false,
    });
    assert.equal(reply.n, 2);
    assert.deepEqual(reply.writeErrors, [
      {
        index: 1,
        code: 11000,
        errmsg: 'E11000 duplicate key error collection: shop.things index: _id_ dup key: { _id: 1 }',
        keyPattern: { _id: 1 },
        keyValue: { _id: 1 },
      },
    ]);
    assert.equal(documents.ask({ insert: 'things', documents: [{ _id: 3 }, { _id: 3 }, { _id: 4 }] }).n, 1);
  });

  test('sorts across types, skips, limits and projects', (t) => {
    const documents = new TestDocuments(t);
    const values = [true, 'a', { a: 1 }, 3, null, new Date(0), [2]];
    documents.insert('mixed', ...values.map((value, _id) => ({ _id, value })));
    assert.deepEqual(documents.ids('mixed', {}, { sort: { value: 1 } }), [4, 6, 3, 1, 2, 0, 5]);
    assert.deepEqual(documents.ids('mixed', {}, { sort: { value: -1 }, skip: 1, limit: 2 }), [0, 2]);
    assert.deepEqual(documents.find('mixed', { _id: 3 }, { projection: { _id: 0, value: 1 } }), [
      { value: 3 },
    ]);
    assert.deepEqual(documents.find('mixed', { _id: 2 }, { projection: { value: 0 } }), [{ _id: 2 }]);
  });

  test('filters as MongoDB does', (t) => {
    const documents = new TestDocuments(t);
    documents.insert(
      'people',
      {
        _id: 1,
        name: 'Ann',
        age: 30,
        tags: ['a', 'b'],
        home: { town: 'Bonn' },
        pets: [{ kind: 'cat', age: 2 }],
      },
      {
        _id: 2,
        name: 'Bob',
        age: Long.fromNumber(40),
        tags: [],
        home: null,
        pets: [
          { kind: 'dog', age: 9 },
          { kind: 'cat', age: 1 },
        ],
      },
      { _id: 3, name: 'cid', age: Decimal128.fromString('50.5'), home: { town: 'Ulm' }, score: Number.NaN },
      { _id: 4, age: 'old', tags: 'a' },
    );
    const cases: [object, number[]][] = [
      [{ age: { $gt: 35 } }, [2, 3]],
      [{ age: { $gte: 30, $lt: 50.5 } }, [1, 2]],
      [{ age: 40 }, [2]],
      [{ age: { $in: [30, 'old', null] } }, [1, 4]],
      [{ tags: 'a' }, [1, 4]],
      [{ tags: { $all: ['b', 'a'] } }, [1]],
      [{ tags: { $size: 0 } }, [2]],
      [{ tags: ['a', 'b'] }, [1]],
      [{ tags: { $nin: ['a'] } }, [2, 3]],
      [{ name: { $exists: false } }, [4]],
      [{ name: null }, [4]],
      [{ home: null }, [2, 4]],
      [{ 'home.town': 'Ulm' }, [3]],
      [{ 'pets.age': { $gt: 5, $lt: 2 } }, [2]],
      [{ pets: { $elemMatch: { kind: 'cat', age: { $gt: 1 } } } }, [1]],
      [{ 'pets.0.kind': 'dog' }, [2]],
      [{ name: /^c/i }, [3]],
      [{ name: { $regex: 'N', $options: 'i' } }, [1]],
      [{ name: { $not: /^[AB]/ } }, [3, 4]],
      [{ $or: [{ age: 30 }, { name: 'Bob' }] }, [1, 2]],
      [{ $nor: [{ age: { $type: 'number' } }] }, [4]],
      [{ age: { $type: ['long', 'decimal'] } }, [2, 3]],
      [{ age: { $mod: [20, 10] } }, [1, 3]],
      [{ score: { $lt: 1 } }, []],
      [{ score: Number.NaN }, [3]],
      [{ $expr: { $eq: ['$name', 'Ann'] } }, [1]],
    ];
    for (const [filter, ids] of cases)
      assert.deepEqual(documents.ids('people', filter), ids, JSON.stringify(filter));
  });

  test('what cannot be had is refused, each with the code of a real server', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('things', { _id: 1 });
    const cases: [object, number][] = [
      [{ find: 'things', filter: { $where: 'true' } }, 6108304],
      [{ find: 'things', filter: { $expr: { $function: { body: 'f', args: [], lang: 'js' } } } }, 31264],
      [{ find: 'things', filter: { $text: { $search: 'x' } } }, 27],
      [{ find: 'things', filter: { a: { $near: [1, 1] } } }, 291],
      [{ find: 'things', filter: { a: { $no: 1 } } }, 2],
      [{ find: 'things', collation: { locale: 'de', strength: 4 } }, 2],
      [{ find: 'things', filter: { a: { $bitsAllSet: '1' } } }, 2],
      [{ find: 'things', filter: { a: { $regex: 'a', $options: 'x' } } }, 51108],
      [{ find: 'things', txnNumber: 1, startTransaction: true, autocommit: false }, 72],
      [{ mapReduce: 'things' }, 31264],
      [{ aggregate: 'things', pipeline: [{ $changeStream: {} }], cursor: {} }, 40573],
      [{ aggregate: 'things', pipeline: [{ $nothing: {} }], cursor: {} }, 40324],
      [{ aggregate: 'things', pipeline: [{ $redact: '$$KEEP' }], cursor: {} }, 40324],
      [
        {
          aggregate: 'things',
          pipeline: [{ $merge: { into: 'things', whenMatched: [{ $limit: 1 }] } }],
          cursor: {},
        },
        72,
      ],
      [{ aggregate: 'things', pipeline: [{ $project: { a: { $nothing: 1 } } }], cursor: {} }, 168],
      [{ aggregate: 'things', pipeline: [{ $project: { a: { $function: {} } } }], cursor: {} }, 31264],
      [
        { aggregate: 'things', pipeline: [{ $group: { _id: 1, a: { $accumulator: {} } } }], cursor: {} },
        31264,
      ],
      [{ aggregate: 'things', pipeline: [{ $facet: { a: [{ $match: { $where: '1' } }] } }], cursor: {} }, 2],
      [{ aggregate: 'things', pipeline: [{ $out: { db: 'other', coll: 'a' } }], cursor: {} }, 13],
      [{ aggregate: 'things', pipeline: [{ $merge: { into: { db: 'other', coll: 'a' } } }], cursor: {} }, 13],
      [
        {
          aggregate: 'things',
          pipeline: [{ $lookup: { from: { db: 'other', coll: 'a' }, as: 'a' } }],
          cursor: {},
        },
        9,
      ],
      [{ create: 'capped', capped: true }, 72],
      [{ create: 'capped', max: 5 }, 72],
      [{ create: 'series', timeseries: { timeField: 'at' } }, 72],
      [{ create: 'series', timeseries: { timeField: 't' } }, 72],
      [{ find: 'things', min: { a: 1 } }, 115],
      [{ createIndexes: 'things', indexes: [{ key: { '$**': 1, b: 1 }, name: 'a' }] }, 67],
      [{ insert: 'system.users', documents: [{}] }, 73],
      [{ insert: 'things', documents: [{ _id: [1] }] }, 53],
      [{ getMore: Long.fromNumber(5), collection: 'things' }, 43],
      [{ constructor: 1 }, 59],
    ];
    for (const [command, code] of cases)
      assert.equal(documents.codeOf(command), code, JSON.stringify(command));
    assert.deepEqual(documents.find('things'), [{ _id: 1 }]);
  });

  test('another database is refused, and so is writing by who may only read', (t) => {
    const documents = new TestDocuments(t);
    const other = documents.database.run(decodeCommand(serialize({ find: 'a', $db: 'other' })), {
      readOnly: false,
    });
    assert.equal(other.code, 13);
    for (const command of [
      { insert: 'a', documents: [{}] },
      { drop: 'a' },
      { aggregate: 'a', pipeline: [{ $out: 'b' }], cursor: {} },
    ]) {
      assert.equal(documents.ask(command, { readOnly: true }).code, 13);
    }
    assert.equal(documents.ask({ find: 'a' }, { readOnly: true }).ok, 1);
    assert.deepEqual(documents.run({ listCollections: 1 }).cursor.firstBatch, []);
  });

  test('too deep, too large and no BSON are errors', (t) => {
    const documents = new TestDocuments(t);
    const nested = (levels: number) =>
      Array.from({ length: levels }).reduce<object>((inner) => ({ inner }), {});
    documents.insert('deep', nested(90));
    assert.throws(() => decodeCommand(serialize({ find: 'deep', filter: nested(1001) })), { code: 15 });
    assert.equal(documents.codeOf({ insert: 'deep', documents: [nested(101)] }), 15);
    assert.equal(
      documents.codeOf({ insert: 'deep', documents: [{ text: 'x'.repeat(16 * 2 ** 20) }] }),
      10334,
    );
    assert.throws(() => decodeCommand(Buffer.from([12, 0, 0, 0, 2, 65, 0, 255, 255, 255, 127, 0])), {
      code: 22,
    });
  });
});

describe('cursors', () => {
  test('give all documents once, whatever the size of batches', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('many', ...Array.from({ length: 250 }, (_, _id) => ({ _id, text: 'x' })));
    for (const command of [
      { find: 'many', batchSize: 20 },
      { find: 'many', batchSize: 0, sort: { text: 1, _id: -1 } },
      { aggregate: 'many', pipeline: [{ $group: { _id: '$_id' } }], cursor: { batchSize: 20 } },
    ]) {
      const first = documents.run(command).cursor;
      const ids = first.firstBatch.map(({ _id }: { _id: number }) => _id);
      let { id } = first;
      while (!id.isZero?.() && Number(id) !== 0) {
        const { cursor } = documents.run({ getMore: Long.fromValue(id), collection: 'many', batchSize: 70 });
        assert.ok(cursor.nextBatch.length <= 70);
        ids.push(...cursor.nextBatch.map(({ _id }: { _id: number }) => _id));
        id = cursor.id;
      }
      assert.equal(new Set(ids).size, 250);
      assert.equal(ids.length, 250);
    }
  });

  test('a batch ends at 16 MiB', (t) => {
    const documents = new TestDocuments(t);
    for (let _id = 0; _id < 5; _id++) documents.insert('large', { _id, bytes: Buffer.alloc(6 * 2 ** 20) });
    assert.equal(documents.find('large').length, 2);
  });

  test('are ended when killed, when idle, and when there are too many', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('many', ...Array.from({ length: 10 }, (_, _id) => ({ _id })));
    const open = () => Long.fromValue(documents.run({ find: 'many', batchSize: 1 }).cursor.id);
    const isOpen = (id: Long) => documents.ask({ getMore: id, collection: 'many', batchSize: 1 }).ok === 1;
    const killed = open();
    assert.deepEqual(documents.run({ killCursors: 'many', cursors: [killed] }).cursorsKilled.length, 1);
    assert.equal(isOpen(killed), false);
    const [idle, used] = [open(), open()];
    documents.clock.advance(6 * 60_000);
    assert.ok(isOpen(used));
    documents.clock.advance(6 * 60_000);
    open();
    assert.equal(isOpen(idle), false);
    assert.ok(isOpen(used));
    const first = open();
    for (let i = 0; i < 1100; i++) open();
    assert.equal(isOpen(first), false);
  });

  test('one whose collection is gone fails and leaves the others alone', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('many', ...Array.from({ length: 300 }, (_, _id) => ({ _id })));
    const id = Long.fromValue(documents.run({ find: 'many', batchSize: 1 }).cursor.id);
    documents.run({ drop: 'many' });
    assert.equal(documents.codeOf({ getMore: id, collection: 'many' }), 175);
  });

  test('a time limit ends a scan', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('many', ...Array.from({ length: 2000 }, (_, _id) => ({ _id })));
    const now = documents.clock.monotonic.bind(documents.clock);
    let calls = 0;
    documents.clock.monotonic = () => now() + 10 * calls++;
    const scan = { find: 'many', filter: { a: 1 } };
    assert.equal(documents.codeOf({ ...scan, maxTimeMS: 50 }), 50);
    const context = { readOnly: true, withinMs: 50 };
    assert.equal(documents.database.run(scan, context).codeName, 'MaxTimeMSExpired');
    assert.equal(documents.database.run({ ...scan, maxTimeMS: 1e6 }, context).code, 50);
    assert.equal(documents.codeOf(scan), undefined);
  });
});

describe('regular expressions', () => {
  const RUNAWAY = '^(a+)+$';
  const project = (name: string, regex: unknown) => ({
    aggregate: 'notes',
    pipeline: [{ $project: { _id: 0, r: { [name]: { input: '$text', regex } } } }],
    cursor: {},
  });

  test('one that would take for ever ends with an error, wherever it stands, and the next command works', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('notes', { _id: 1, text: `${'a'.repeat(60)}b` });
    const filters = [
      { text: { $regex: RUNAWAY, $options: 'i' } },
      { text: new BSONRegExp(RUNAWAY) },
      { $expr: { $regexMatch: { input: '$text', regex: RUNAWAY } } },
    ];
    for (const filter of filters) {
      const { code, codeName } = documents.ask({ find: 'notes', filter });
      assert.deepEqual([code, codeName], [50, 'MaxTimeMSExpired'], JSON.stringify(filter));
    }
    const update = { update: 'notes', updates: [{ q: filters[0], u: { $set: { a: 1 } } }] };
    assert.equal(documents.codeOf(update), 50);
    for (const name of ['$regexFind', '$regexFindAll'])
      assert.equal(documents.codeOf(project(name, RUNAWAY)), 50);
    assert.deepEqual(documents.ids('notes', { text: { $regex: '^(a+)+b$' } }), [1]);
    documents.insert('notes', { _id: 2 });
  });

  test('those of BSON find in expressions what their text would', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('notes', { text: 'xAAb' });
    const { cursor } = documents.run(project('$regexFind', new BSONRegExp('(a+)b', 'i')));
    assert.deepEqual(cursor.firstBatch, [{ r: { match: 'AAb', idx: 1, captures: ['AA'] } }]);
  });
});

describe('size limit', () => {
  test('a full database refuses to grow, and takes writes again once there is space', (t) => {
    const documents = new TestDocuments(t);
    documents.sizeLimit = 2 ** 20;
    const text = 'x'.repeat(100_000);
    let code: number | undefined;
    let count = 0;
    while (code === undefined && count < 100) {
      code = documents.codeOf({ insert: 'large', documents: [{ _id: count, text }] });
      count++;
    }
    assert.equal(code, 14031);
    assert.equal(documents.run({ count: 'large' }).n, count - 1);
    assert.equal(documents.find('large').length, count - 1);
    documents.run({ delete: 'large', deletes: [{ q: {}, limit: 0 }] });
    documents.insert('large', { text });
    documents.sizeLimit = 2 ** 30;
    documents.insert('large', { text: text.repeat(20) });
  });

  test('what would not fit in memory is an error', (t) => {
    const documents = new TestDocuments(t);
    for (let _id = 0; _id < 9; _id++)
      documents.insert('large', { _id, text: 'x', more: Buffer.alloc(12 * 2 ** 20) });
    const cursor = {};
    assert.equal(
      documents.codeOf({
        aggregate: 'large',
        pipeline: [{ $group: { _id: 1, all: { $push: '$$ROOT' } } }],
        cursor,
      }),
      292,
    );
    assert.equal(documents.codeOf({ aggregate: 'large', pipeline: [{ $sort: { text: 1 } }], cursor }), 292);
    assert.equal(documents.codeOf({ find: 'large', sort: { text: 1 } }), 292);
    assert.deepEqual(
      documents.ids('large', {}, { sort: { text: 1 }, limit: 1, projection: { _id: 1 } }),
      [0],
    );
  });
});
