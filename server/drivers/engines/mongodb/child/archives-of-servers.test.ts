/** Archives of a whole server, with what is the server's, and with documents of its older versions. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { type Document, Int32, serialize } from 'bson';
import { ArchiveWriter, metadataOf } from '../../../../../libs/mongo/index.ts';
import { LoadFailed } from '../../../../databases/engine.ts';
import { LeftOut } from '../../../../databases/left-out.ts';
import { openMongodb } from '../../../../testing/mongodb-fixture.ts';

const fixture = openMongodb({ firstPort: 27_640 });
after(() => fixture.close());

test('with users, a log and odd documents is taken without them, and tells', async () => {
  const writer = new ArchiveWriter();
  const int = (value: number) => new Int32(value);
  const key = { _id: int(1) };
  const clusteredIndex = { v: int(2), key, name: 'own', unique: true };
  const all: { db: string; name: string; documents: Document[]; more?: Document }[] = [
    { db: '', name: 'oplog', documents: [{ op: 'n' }] },
    { db: 'admin', name: 'system.users', documents: [{ _id: 'u' }] },
    { db: 'admin', name: 'system.version', documents: [] },
    { db: 'admin', name: 'things', documents: [{ _id: 1 }] },
    { db: 'shop', name: '$admin.system.roles', documents: [{ _id: 'r' }] },
    { db: 'shop', name: 'system.js', documents: [{ _id: 'f' }] },
    { db: 'shop', name: 'system.views', documents: [] },
    {
      db: 'shop',
      name: 'goods',
      documents: [{ _id: 1 }, { _id: { $x: 1 } }, { _id: 2, $field: 3, 'a.b': 4 }],
      more: { options: { clusteredIndex }, indexes: [{ ...clusteredIndex, clustered: true }] },
    },
    { db: 'shop', name: 'old$name', documents: [{ _id: 1 }] },
  ];
  const archive = Buffer.concat([
    writer.head(
      '8.0.4',
      all.map(({ db, name, more }) => ({
        db,
        collection: name,
        metadata: metadataOf(name, { type: 'collection', options: {}, indexes: [], ...more }),
      })),
    ),
    ...all.flatMap(({ db, name, documents }) => [
      writer.documents(
        db,
        name,
        documents.map((each) => serialize(each)),
      ),
      writer.endOf(db, name),
    ]),
  ]);
  const { database, uri } = await fixture.make();
  const load = (leftOut?: LeftOut) =>
    fixture.engine.load(database, Readable.from([archive]), {
      signal: new AbortController().signal,
      leftOut,
    });
  await assert.rejects(load(), LoadFailed);
  const leftOut = new LeftOut();
  await load(leftOut);
  assert.deepEqual(
    leftOut.notes.map(({ text }) => text),
    [
      ...['oplog', 'admin.system.users', 'admin.things', 'shop.$admin.system.roles', 'shop.system.js'],
      'collection old$name',
      'document {"$x":1} of goods',
    ],
  );
  const own = (await fixture.connect(uri)).db();
  assert.deepEqual(
    (await own.listCollections().toArray()).map(({ name }) => name),
    ['goods'],
  );
  assert.deepEqual(await own.collection('goods').find().toArray(), [
    { _id: 1 },
    { _id: 2, $field: 3, 'a.b': 4 },
  ]);
});
