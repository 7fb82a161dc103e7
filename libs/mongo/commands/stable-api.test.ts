/** The Stable API, according to its page in the manual. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Document } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

test('a command names version 1 of the API, and with apiStrict is one of it', (t) => {
  const documents = new TestDocuments(t);
  documents.insert('a', { _id: 1 });
  const codeOf = (command: Document, api: Document) => documents.codeOf({ ...command, ...api });
  const strict = { apiVersion: '1', apiStrict: true };
  assert.equal(codeOf({ find: 'a' }, { apiVersion: '2' }), 322);
  assert.equal(codeOf({ find: 'a' }, { apiVersion: 1 }), 322);
  assert.equal(codeOf({ find: 'a' }, { apiStrict: true }), 72);
  assert.equal(codeOf({ find: 'a' }, { apiDeprecationErrors: true }), 72);
  assert.equal(codeOf({ find: 'a' }, strict), undefined);
  assert.equal(codeOf({ count: 'a' }, strict), undefined);
  assert.equal(codeOf({ distinct: 'a', key: '_id' }, strict), 323);
  assert.equal(codeOf({ distinct: 'a', key: '_id' }, { apiVersion: '1' }), undefined);
  assert.equal(codeOf({ collStats: 'a' }, strict), 323);
  assert.equal(codeOf({ find: 'a', tailable: true }, strict), 323);
  assert.equal(codeOf({ create: 'b', capped: true, size: 1000 }, strict), 323);
  const aggregate = (stage: Document) => ({ aggregate: 'a', pipeline: [stage], cursor: {} });
  assert.equal(codeOf(aggregate({ $indexStats: {} }), strict), 323);
  assert.equal(codeOf(aggregate({ $collStats: { storageStats: {} } }), strict), 323);
  assert.equal(codeOf(aggregate({ $collStats: { count: {} } }), strict), undefined);
  assert.equal(codeOf(aggregate({ $match: { _id: 1 } }), strict), undefined);
});
