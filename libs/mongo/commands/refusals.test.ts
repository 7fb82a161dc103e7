/** Common mistakes, and the codes of MongoDB 7.0 for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Document } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

const find = (filter: Document, more: Document = {}) => ({ find: 'a', filter, ...more });
const update = (u: Document, more: Document = {}) => ({
  update: 'a',
  updates: [{ q: { _id: 1 }, u, ...more }],
});
const index = (key: Document, more: Document = {}) => ({
  createIndexes: 'a',
  indexes: [{ key, name: 'i', ...more }],
});

const REFUSED: readonly (readonly [Document, number])[] = [
  [find({ n: { $in: 5 } }), 2],
  [find({ $and: [] }), 2],
  [find({ $or: 5 }), 2],
  [find({ $foo: 1 }), 2],
  [find({ n: { $foo: 1 } }), 2],
  [find({ n: { $not: 5 } }), 2],
  [find({ n: { $type: 'thing' } }), 2],
  [find({ n: { $mod: [0, 1] } }), 2],
  [find({ n: { $size: 'x' } }), 2],
  [find({ n: { $elemMatch: 5 } }), 2],
  [find({ s: { $options: 'i' } }), 2],
  [find({ s: { $regex: '(' } }), 51091],
  [find({}, { sort: 'n' }), 14],
  [find({}, { sort: { n: 'up' } }), 15974],
  [find({}, { sort: { n: 2 } }), 15975],
  [find({}, { projection: { n: 1, s: 0 } }), 31254],
  [find({}, { projection: { l: 1, 'l.x': 1 } }), 31249],
  [find({ _id: 1 }, { projection: { 'l.$': 1 } }), 2],
  [{ count: 'a', query: 5 }, 14],
  [{ distinct: 'a', key: 5 }, 14],
  [{ getMore: 5, collection: 'a' }, 43],
  [{ aggregate: 'a', pipeline: [] }, 9],
  [{ aggregate: 'a', pipeline: 5, cursor: {} }, 14],
  [{ insert: 'a', documents: [{ _id: 1 }] }, 11000],
  [{ insert: 'a', documents: [{ _id: [1] }] }, 53],
  [{ insert: 'a', documents: [] }, 16],
  [update({ $set: { _id: 2 } }), 66],
  [update({ $set: { n: 1 }, $inc: { n: 1 } }), 40],
  [update({ $inc: { s: 1 } }), 14],
  [update({ $push: { s: 1 } }), 2],
  [update({ $set: { 's.x': 1 } }), 28],
  [update({ $foo: { n: 1 } }), 9],
  [update({ $set: { 'l.$': 1 } }), 2],
  [update({ $set: { 'l.$[x]': 1 } }), 2],
  [update({ $set: { n: 1 } }, { arrayFilters: [{ x: 1 }] }), 9],
  [update({ n: 1 }, { multi: true }), 9],
  [{ delete: 'a', deletes: [{ q: {}, limit: 2 }] }, 9],
  [{ findAndModify: 'a', query: {} }, 9],
  [{ findAndModify: 'a', query: {}, remove: true, update: { $set: { x: 1 } } }, 9],
  [{ findAndModify: 'a', query: {}, remove: true, new: true }, 9],
  [{ create: 'a' }, 48],
  [{ create: '' }, 73],
  [{ create: 'a$b' }, 73],
  [{ create: 'b', capped: true }, 72],
  [{ create: 'b', timeseries: { timeField: 't' } }, 72],
  [{ collMod: 'none' }, 26],
  [{ listIndexes: 'none' }, 26],
  [{ dropIndexes: 'none', index: '*' }, 26],
  [{ renameCollection: 'shop.none', to: 'shop.b' }, 26],
  [{ dropIndexes: 'a', index: 'none' }, 27],
  [{ dropIndexes: 'a', index: '_id_' }, 72],
  [index({ x: 'sideways' }), 67],
  [index({ x: 0 }), 67],
  [index({ x: 1, y: 1 }, { expireAfterSeconds: 5 }), 67],
  [index({ l: 1, m: 1 }), 171],
  [index({ u: 1 }, { unique: true }), 11000],
  [index({ x: 1 }, { sideways: true }), 197],
  [{ mapReduce: 'a' }, 31264],
  [{ nothing: 1 }, 59],
];

test('mistakes are refused by their codes, and change nothing', (t) => {
  const documents = new TestDocuments(t);
  const all = [
    { _id: 1, n: 1, s: 'abc', l: [1, 2], m: [3, 4], u: 1 },
    { _id: 2, u: 1 },
  ];
  documents.insert('a', ...all);
  for (const [command, code] of REFUSED) {
    const reply = documents.ask(command);
    assert.equal(reply.code ?? reply.writeErrors?.[0].code, code, JSON.stringify([command, reply]));
    if (reply.writeErrors !== undefined) {
      const { n, nModified = 0 } = reply;
      assert.deepEqual([n, nModified], [0, 0], JSON.stringify(command));
    } else assert.match(reply.codeName, /^[A-Z][A-Za-z0-9]+$/);
  }
  assert.deepEqual(documents.find('a'), all);
  assert.equal(documents.run({ listIndexes: 'a' }).cursor.firstBatch.length, 1);
});
