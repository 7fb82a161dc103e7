/**
 * `$or` and regular expressions with indexes, according to the manual's pages on `$or`, `$regex` and explain
 * results.
 */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { BSONRegExp, type Document } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

const COUNT = 2000;

function shop(t: TestContext): TestDocuments {
  const documents = new TestDocuments(t);
  const keys: Document[] = [{ a: 1 }, { b: -1 }, { s: 1 }, { d: -1, a: 1 }, { l: 1 }];
  const indexes = keys.map((key) => ({ key, name: Object.keys(key).join('') }));
  documents.run({ createIndexes: 'c', indexes });
  const all = Array.from({ length: COUNT }, (_, i) => ({
    _id: i,
    a: i,
    b: i % 1000,
    s: `name${i}`,
    d: `d${i}`,
    l: [`x${i}`, `y${i % 10}`],
    free: i,
    kind: i % 2,
  }));
  documents.insert('c', ...all);
  return documents;
}

interface Read {
  readonly plan: Document;
  readonly stats: Document;
  readonly ids: unknown[];
}

/** The plan of a filter; its results are those of a scan of all documents. */
function readOf(documents: TestDocuments, filter: Document, more: Document = {}): Read {
  const found = documents.run({ explain: { find: 'c', filter, ...more }, verbosity: 'executionStats' });
  const ids = documents.ids('c', filter, more);
  const scanned = documents.ids('c', filter, { ...more, hint: { $natural: 1 } });
  const inOrder = (list: unknown[]) => (more.sort ? list : list.toSorted((a, b) => Number(a) - Number(b)));
  assert.deepEqual(inOrder(ids), inOrder(scanned));
  return { plan: found.queryPlanner.winningPlan, stats: found.executionStats, ids };
}

const namesOf = ({ stage, inputStage, inputStages }: Document): unknown[] => [
  stage,
  ...(inputStage ? namesOf(inputStage) : []),
  ...(inputStages ? [inputStages.map(namesOf)] : []),
];
const examined = ({ stats }: Read) => [stats.totalKeysExamined, stats.totalDocsExamined];

describe('$or', () => {
  test('reads an index for each branch, and each document once', (t) => {
    const documents = shop(t);
    const read = readOf(documents, { $or: [{ a: 5 }, { b: 7 }] });
    assert.deepEqual(namesOf(read.plan), ['SUBPLAN', 'FETCH', 'OR', [['IXSCAN'], ['IXSCAN']]]);
    const [first, second] = read.plan.inputStage.inputStage.inputStages;
    assert.deepEqual([first.indexName, first.indexBounds], ['a', { a: ['[5, 5]'] }]);
    assert.deepEqual([second.indexName, second.indexBounds], ['b', { b: ['[7, 7]'] }]);
    assert.deepEqual(examined(read), [3, 3]);
    const executed = read.stats.executionStages.inputStage.inputStage;
    assert.deepEqual([executed.stage, executed.nReturned], ['OR', 3]);
    assert.deepEqual(
      executed.inputStages.map(({ keysExamined }: Document) => keysExamined),
      [1, 2],
    );
    assert.deepEqual(examined(readOf(documents, { $or: [{ a: 7 }, { b: 7 }, { a: 7 }] })), [4, 2]);
  });

  test('takes the rest of the filter into each branch, and is found in $and and in $or', (t) => {
    const documents = shop(t);
    const rest = readOf(documents, { free: 5, $or: [{ a: 5 }, { b: 7 }] });
    assert.deepEqual(namesOf(rest.plan), ['FETCH', 'OR', [['IXSCAN'], ['IXSCAN']]]);
    assert.deepEqual(examined(rest), [3, 3]);
    assert.deepEqual(
      examined(readOf(documents, { $and: [{ free: 5 }, { $or: [{ a: 5 }, { b: 5 }] }] })),
      [3, 2],
    );
    const nested = { $or: [{ a: 1 }, { free: { $lt: 9 }, $or: [{ b: 2 }, { s: 'name4' }] }] };
    assert.deepEqual(examined(readOf(documents, nested)), [4, 4]);
    const both = readOf(documents, { d: 'd9', $or: [{ a: 9 }, { a: 10 }] });
    assert.deepEqual(examined(both), [1, 1]);
    assert.deepEqual(examined(readOf(documents, { a: 3, $or: [{ free: 3 }, { free: 4 }] })), [1, 1]);
  });

  test('reads all documents where one branch has no index', (t) => {
    const documents = shop(t);
    const read = readOf(documents, { $or: [{ a: 5 }, { free: 6 }] });
    assert.deepEqual(namesOf(read.plan), ['COLLSCAN']);
    assert.deepEqual(examined(read), [0, COUNT]);
    assert.deepEqual(namesOf(readOf(documents, { $nor: [{ a: 5 }] }).plan), ['COLLSCAN']);
  });

  test('is sorted, limited, counted, updated and deleted by', (t) => {
    const documents = shop(t);
    const filter = { $or: [{ a: { $lt: 3 } }, { b: { $gte: 998 } }] };
    const read = readOf(documents, filter, { sort: { a: -1 }, skip: 1, limit: 4 });
    assert.deepEqual(read.ids, [1998, 999, 998, 2]);
    assert.deepEqual(examined(read), [7, 7]);
    assert.equal(documents.run({ count: 'c', query: filter }).n, 7);
    const move = { q: filter, u: { $inc: { a: 1, b: 1 } }, multi: true };
    assert.equal(documents.run({ update: 'c', updates: [move] }).n, 7);
    assert.equal(documents.run({ delete: 'c', deletes: [{ q: filter, limit: 0 }] }).n, 6);
    assert.deepEqual(documents.aggregate('c', [{ $match: filter }, { $count: 'n' }]), []);
  });

  test('is read by a partial index only in branches that it covers, and goes on with getMore', (t) => {
    const documents = shop(t);
    const partial = { key: { free: 1 }, name: 'free', partialFilterExpression: { kind: 1 } };
    documents.run({ createIndexes: 'c', indexes: [partial] });
    const covered = readOf(documents, { $or: [{ a: 5 }, { kind: 1, free: 7 }] });
    assert.deepEqual(examined(covered), [2, 2]);
    assert.deepEqual(namesOf(readOf(documents, { $or: [{ a: 5 }, { free: 7 }] }).plan), ['COLLSCAN']);
    const find = { find: 'c', filter: { $or: [{ a: { $lt: 10 } }, { l: 'y3' }] }, batchSize: 5 };
    const { cursor } = documents.run(find);
    const { cursor: more } = documents.run({ getMore: cursor.id, collection: 'c', batchSize: 1000 });
    const ids = [...cursor.firstBatch, ...more.nextBatch].map(({ _id }: Document) => _id);
    assert.deepEqual([ids.length, new Set(ids).size], [209, 209]);
  });
});

describe('a regular expression with a fixed beginning', () => {
  test('has the bounds of an index', (t) => {
    const documents = shop(t);
    const read = readOf(documents, { s: /^name77$/ });
    assert.deepEqual(namesOf(read.plan), ['FETCH', 'IXSCAN']);
    assert.deepEqual(read.plan.inputStage.indexBounds, {
      s: ['["name77", "name78")', '[/^name77$/, /^name77$/]'],
    });
    assert.deepEqual([examined(read), read.ids], [[11, 11], [77]]);
    const down = readOf(documents, { d: /^d199/, a: { $gt: 0 } });
    assert.deepEqual(down.plan.inputStage.indexBounds.d, ['[/^d199/, /^d199/]', '("d19:", "d199"]']);
    assert.deepEqual(examined(down), [11, 11]);
    assert.deepEqual(examined(readOf(documents, { l: /^x199/ })), [11, 11]);
    const sorted = readOf(documents, { s: /^name1[0-9]$/ }, { sort: { s: -1 }, limit: 2 });
    assert.deepEqual(namesOf(sorted.plan), ['LIMIT', 'FETCH', 'IXSCAN']);
    assert.deepEqual(sorted.ids, [19, 18]);
  });

  test('is one where what is fixed stands for itself', (t) => {
    const documents = shop(t);
    const texts = ['a.b', 'axb', 'a.bc', 'Qa.b', 'a|b', 'a', 'ab', 'abb', '/a/b', 'a😀b', 'ä', 'A.B', 'a\nb'];
    documents.insert('c', ...texts.map((s, i) => ({ _id: 5000 + i, s })), { _id: 6000, s: /^a\.b/ });
    const isRead = (pattern: string, options = '') => {
      const filter = { s: new BSONRegExp(pattern, options) };
      const { plan } = readOf(documents, filter);
      return namesOf(plan).includes('IXSCAN') ? plan.inputStage.indexBounds.s[0] : null;
    };
    assert.equal(isRead('^a\\.b'), '["a.b", "a.c")');
    assert.equal(isRead('^\\Qa.b\\E'), '["a.b", "a.c")');
    assert.equal(isRead('^\\Qa.b'), '["a.b", "a.c")');
    assert.equal(isRead('\\Aa\\.b'), '["a.b", "a.c")');
    assert.equal(isRead('^ab*'), '["a", "b")');
    assert.equal(isRead('^ab?b'), '["a", "b")');
    assert.equal(isRead('^ab{0,2}'), '["a", "b")');
    assert.equal(isRead('^ab+'), '["ab", "ac")');
    assert.equal(isRead('^a😀?b'), '["a", "b")');
    assert.equal(isRead('^\\/a\\/'), '["/a/", "/a0")');
    assert.equal(isRead('^a(b|x)'), '["a", "b")');
    assert.equal(isRead('^a[.|]b', 's'), '["a", "b")');
    assert.equal(isRead('^a\\nb'), '["a", "b")');
    assert.equal(isRead('^a\\|b'), '["a|b", "a|c")');
    for (const pattern of ['a', '^', '^a|b', '^.a', '^(a)', '^a*', '(?i)^a', '^a[]|b]', '^\\d'])
      assert.equal(isRead(pattern), null, pattern);
    assert.equal(isRead('^a', 'i'), null);
    assert.equal(isRead('^a', 'm'), null);
    assert.deepEqual(documents.ids('c', { s: { $regex: '^\\Qa.b\\E$' } }), [5000]);
    assert.deepEqual(documents.ids('c', { s: { $regex: '\\Aa\\nb\\z', $options: 'm' } }), [5012]);
  });

  test('may stand beside values, and beside other expressions', (t) => {
    const documents = shop(t);
    const read = readOf(documents, { s: { $in: [/^name77/, 'name5', /^name7/, 'name777'] } });
    assert.deepEqual(
      [namesOf(read.plan), examined(read)],
      [
        ['FETCH', 'IXSCAN'],
        [112, 112],
      ],
    );
    assert.deepEqual(namesOf(readOf(documents, { s: { $in: [/^name77/, /77/] } }).plan), ['COLLSCAN']);
    assert.deepEqual(namesOf(readOf(documents, { s: { $not: /^name1/ } }).plan), ['COLLSCAN']);
    const mail = { $or: [{ s: /^name77$/ }, { d: /^d78$/ }] };
    assert.deepEqual(examined(readOf(documents, mail)), [22, 22]);
  });

  test('is not found by an index with a collation, whose keys are other texts', (t) => {
    const documents = new TestDocuments(t);
    const collation = { locale: 'en', strength: 2 };
    documents.run({ createIndexes: 'c', indexes: [{ key: { s: 1 }, name: 's', collation }] });
    documents.insert('c', { _id: 1, s: 'abc' }, { _id: 2, s: 'ABC' });
    const read = readOf(documents, { s: /^ab/ }, { collation });
    assert.deepEqual([namesOf(read.plan), read.ids], [['COLLSCAN'], [1]]);
  });
});
