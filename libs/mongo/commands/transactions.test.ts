/** Transactions, according to the manual's pages on them and the drivers' specification of transactions. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Binary, type Document, Long } from 'bson';
import { waits } from '../storage/cursors.ts';
import { TestDocuments } from '../testing/document-database.ts';

/** A session as in drivers. */
class Session {
  readonly #documents: TestDocuments;
  readonly #lsid: Document;
  number = 0;
  #isBegun = false;

  constructor(documents: TestDocuments, id = 1) {
    this.#documents = documents;
    this.#lsid = { id: new Binary(Buffer.alloc(16, id), 4) };
  }

  begin(): this {
    this.number++;
    this.#isBegun = false;
    return this;
  }

  ask(command: Document, more: Document = {}): Document {
    const first = this.#isBegun ? {} : { startTransaction: true };
    this.#isBegun = true;
    return this.again({ ...command, ...first }, more);
  }

  again(command: Document, more: Document = {}): Document {
    const fields = { lsid: this.#lsid, txnNumber: Long.fromNumber(this.number), autocommit: false };
    return this.#documents.ask({ ...command, ...fields, ...more });
  }

  run(command: Document): Document {
    const reply = this.ask(command);
    if (reply.ok === 1 && !reply.writeErrors) return reply;
    throw new Error(JSON.stringify(reply));
  }

  ids(filter: Document = {}): unknown[] {
    const { cursor } = this.run({ find: 'a', filter, batchSize: 1000 });
    return cursor.firstBatch.map(({ _id }: Document) => _id);
  }

  end(how: 'commit' | 'abort'): Document {
    return this.again({ [`${how}Transaction`]: 1 });
  }
}

const insert = (...ids: unknown[]) => ({ insert: 'a', documents: ids.map((_id) => ({ _id, n: 0 })) });
const add = (_id: unknown, by = 1) => ({ update: 'a', updates: [{ q: { _id }, u: { $inc: { n: by } } }] });
const said = ({ code, errorLabels }: Document) => [code, errorLabels ?? []];
const TRANSIENT = ['TransientTransactionError'];

function begun(t: TestContext): { documents: TestDocuments; one: Session; other: Session } {
  const documents = new TestDocuments(t);
  documents.run(insert(1, 2));
  return { documents, one: new Session(documents, 1).begin(), other: new Session(documents, 2).begin() };
}

describe('a transaction', () => {
  test('is seen by itself alone until it is committed, and then by all', (t) => {
    const { documents, one, other } = begun(t);
    one.run(insert(3));
    one.run(add(1, 5));
    one.run({ delete: 'a', deletes: [{ q: { _id: 2 }, limit: 1 }] });
    assert.deepEqual(one.ids(), [1, 3]);
    assert.deepEqual(
      [documents.ids('a', {}), other.ids()],
      [
        [1, 2],
        [1, 2],
      ],
    );
    assert.deepEqual(one.end('commit'), { ok: 1 });
    assert.deepEqual(documents.ids('a', {}), [1, 3]);
    assert.equal(documents.find('a', { _id: 1 })[0]?.n, 5);
    assert.deepEqual(other.ids(), [1, 2], 'a snapshot');
    assert.deepEqual(other.end('commit'), { ok: 1 });
    assert.equal(documents.run({ count: 'a' }).n, 2);
  });

  test('leaves nothing when it is aborted, and none of its commands after an error', (t) => {
    const { documents, one } = begun(t);
    one.run(insert(3));
    one.run({ create: 'b' });
    assert.deepEqual(one.end('abort'), { ok: 1 });
    assert.deepEqual([documents.ids('a', {}), documents.run({ count: 'b' }).n], [[1, 2], 0]);
    assert.deepEqual(said(one.end('commit')), [251, TRANSIENT]);
    assert.deepEqual(said(one.end('abort')), [251, TRANSIENT]);
    one.begin().run(insert(3));
    assert.equal(one.ask(insert(1)).writeErrors[0].code, 11000);
    assert.deepEqual(said(one.ask(insert(4))), [251, TRANSIENT]);
    assert.deepEqual(said(one.end('commit')), [251, TRANSIENT]);
    one.begin().run(insert(3));
    assert.deepEqual(said(one.ask({ find: 'a', filter: { $no: 1 } })), [2, []]);
    assert.deepEqual(said(one.end('commit')), [251, TRANSIENT]);
    assert.deepEqual(documents.ids('a', {}), [1, 2]);
  });

  test('meets the write of another one with a label that says: try again', (t) => {
    const { documents, one, other } = begun(t);
    one.run(add(1));
    other.ids();
    assert.deepEqual(said(other.ask(add(1))), [112, TRANSIENT]);
    assert.deepEqual(said(other.end('commit')), [251, TRANSIENT]);
    one.end('commit');
    other.begin().run(add(1));
    other.end('commit');
    assert.equal(documents.find('a', { _id: 1 })[0]?.n, 2);
    one.begin().ids();
    documents.run(add(2));
    assert.deepEqual(said(one.ask(add(2))), [112, TRANSIENT], 'written since the snapshot');
    one.begin().ids();
    const waiting = documents.ask(add(2));
    assert.equal(waiting.code, 24, 'a transaction that is tried again has the writer from its start');
    one.run(add(2));
    assert.equal(one.end('commit').ok, 1);
    assert.equal(documents.find('a', { _id: 2 })[0]?.n, 2);
  });

  test('is waited for by writes outside of it, and not by reads', (t) => {
    const { documents, one } = begun(t);
    one.run(add(1));
    assert.deepEqual(documents.ids('a', {}), [1, 2]);
    const reply = documents.database.run(add(2), { readOnly: false });
    assert.deepEqual([reply.code, waits.get(reply)], [24, 5000]);
    documents.clock.advance(3_600_000);
    assert.equal(documents.run(add(2)).nModified, 1, 'the transaction is over by then');
    assert.deepEqual(said(one.end('commit')), [251, TRANSIENT]);
  });

  test('ends after 60 seconds', (t) => {
    const { documents, one } = begun(t);
    one.run(insert(3));
    documents.clock.advance(59_000);
    one.run(insert(4));
    documents.clock.advance(1000);
    assert.deepEqual(said(one.ask(insert(5))), [251, TRANSIENT]);
    assert.deepEqual(documents.ids('a', {}), [1, 2]);
  });

  test('is committed once, however often that is asked, also of a process that began since', (t) => {
    const { documents, one, other } = begun(t);
    one.run(add(1));
    assert.deepEqual([one.end('commit'), one.end('commit')], [{ ok: 1 }, { ok: 1 }]);
    assert.equal(said(one.end('abort'))[0], 256);
    assert.equal(said(one.again(add(1)))[0], 256);
    other.run(insert(9));
    documents.database.close();
    documents.open();
    assert.deepEqual(one.end('commit'), { ok: 1 });
    assert.deepEqual(said(other.end('commit')), [251, TRANSIENT]);
    assert.deepEqual(documents.find('a'), [
      { _id: 1, n: 1 },
      { _id: 2, n: 0 },
    ]);
  });

  test('has cursors and collections of its own', (t) => {
    const { documents, one } = begun(t);
    one.run(insert(3, 4, 5));
    const { cursor } = one.run({ find: 'a', batchSize: 2 });
    assert.equal(documents.codeOf({ getMore: cursor.id, collection: 'a' }), 43);
    const more = one.run({ getMore: cursor.id, collection: 'a', batchSize: 9 });
    assert.deepEqual(
      more.cursor.nextBatch.map(({ _id }: Document) => _id),
      [3, 4, 5],
    );
    one.run({ insert: 'new', documents: [{ _id: 1, s: 'x' }] });
    one.run({ createIndexes: 'newer', indexes: [{ key: { s: 1 }, name: 's', unique: true }] });
    const found = { findAndModify: 'new', query: { s: 'x' }, update: { $set: { s: 'y' } }, new: true };
    assert.equal(one.run(found).value.s, 'y');
    const counted = one.run({ aggregate: 'a', pipeline: [{ $count: 'n' }], cursor: {} });
    assert.deepEqual(counted.cursor.firstBatch, [{ n: 5 }]);
    one.end('commit');
    assert.deepEqual(documents.find('new'), [{ _id: 1, s: 'y' }]);
    documents.run({ insert: 'newer', documents: [{ s: 1 }] });
    assert.equal(documents.codeOf({ insert: 'newer', documents: [{ s: 1 }] }), 11000);
  });

  test('of a session ends when the next one begins, and numbers never go back', (t) => {
    const { documents, one } = begun(t);
    one.run(insert(3));
    one.begin().run(insert(4));
    one.number--;
    assert.equal(one.again(insert(5)).code, 225);
    assert.equal(one.again({ ...insert(5), startTransaction: true }).code, 225);
    one.number++;
    assert.equal(one.again({ ...insert(5), startTransaction: true }).code, 117);
    one.number++;
    assert.deepEqual(said(one.again(insert(5))), [251, TRANSIENT]);
    one.number--;
    one.end('commit');
    assert.deepEqual(documents.ids('a', {}), [1, 2, 4]);
  });

  test('takes no more than its commands and their options', (t) => {
    const { documents, one } = begun(t);
    const codeOf = (command: Document) => one.begin().ask(command).code;
    assert.equal(codeOf({ count: 'a' }), 263);
    assert.equal(codeOf({ listCollections: 1 }), 263);
    assert.equal(codeOf({ drop: 'a' }), 263);
    assert.equal(codeOf({ aggregate: 'a', pipeline: [{ $out: 'b' }], cursor: {} }), 263);
    assert.equal(codeOf({ ...insert(3), writeConcern: { w: 1 } }), 72);
    assert.equal(codeOf({ find: 'a', readConcern: { level: 'linearizable' } }), 72);
    assert.equal(codeOf({ find: 'a', readConcern: { level: 'snapshot' } }), undefined);
    assert.equal(one.ask({ find: 'a', readConcern: { level: 'snapshot' } }).code, 72);
    assert.equal(one.begin().ask(insert(3), { autocommit: true }).code, 72);
    assert.equal(one.begin().again({ ...insert(3), startTransaction: false }).code, 72);
    const number = { txnNumber: Long.ONE };
    assert.equal(documents.codeOf({ ...insert(3), ...number }), 72);
    const lsid = { id: new Binary(Buffer.alloc(16), 4) };
    assert.equal(documents.codeOf({ ...insert(3), startTransaction: true, lsid, ...number }), 72);
    assert.equal(documents.codeOf({ ...insert(3), startTransaction: true, autocommit: false, lsid }), 72);
    assert.equal(documents.codeOf({ commitTransaction: 1 }), 72);
    const retryable = documents.ask({ ...insert(3), lsid, ...number });
    assert.equal(retryable.code, 20);
    assert.doesNotMatch(retryable.errmsg, /^Transaction numbers/, 'drivers make a wrong trail of that');
    assert.deepEqual(documents.ids('a', {}), [1, 2]);
  });

  test('is one of at most 10 of a database', (t) => {
    const documents = new TestDocuments(t);
    documents.run(insert(1));
    const sessions = Array.from({ length: 11 }, (_, i) => new Session(documents, i).begin());
    for (const each of sessions.slice(0, 10)) each.ids();
    assert.deepEqual(said((sessions[10] as Session).ask({ find: 'a' })), [365, TRANSIENT]);
    sessions[0]?.end('abort');
    assert.deepEqual(sessions[10]?.begin().ids(), [1]);
  });

  test('is not over when the file is full, but undone', (t) => {
    const { documents, one } = begun(t);
    documents.sizeLimit = null;
    one.run(insert(3));
    const large = { insert: 'a', documents: [{ _id: 9, s: 'x'.repeat(1_000_000) }] };
    assert.equal(one.ask(large).code, 14031);
    assert.deepEqual(said(one.end('commit')), [251, TRANSIENT]);
    assert.deepEqual(documents.ids('a', {}), [1, 2]);
    documents.sizeLimit = 2 ** 30;
    documents.run(add(1));
  });
});
