import assert from 'node:assert/strict';
import { test } from 'node:test';
import { queryReply, queryResultOf } from './json-answers.ts';

const FOUND = {
  columns: [{ name: 'ä€', type: null }],
  rows: ['["𝄞",1]', '[null,2]'],
  affected: null,
  truncated: true,
};
const answer = (head = {}) => {
  const reply = queryReply(FOUND);
  return { head: { ...reply.head, ...head }, body: Buffer.from(reply.body ?? '') };
};

test('columns and rows are what the child wrote, in the memory in which it came', () => {
  const given = answer();
  const { columns, rows, ...about } = queryResultOf(given);
  assert.deepEqual(about, { rowCount: 2, affected: null, truncated: true });
  assert.equal(String(columns), '[{"name":"ä€","type":null}]');
  assert.equal(String(rows), '[["𝄞",1],[null,2]]');
  for (const piece of [...columns.pieces, ...rows.pieces]) assert.equal(piece.buffer, given.body.buffer);
});

test('what no child of ours answers is refused', () => {
  const wrong = [
    { columnsBytes: -1 },
    { columnsBytes: 1000 },
    { columnsBytes: '1' },
    { rowCount: 1.5 },
    { affected: 'many' },
    { truncated: undefined },
  ];
  for (const head of wrong) assert.throws(() => queryResultOf(answer(head)), /gave no answer/);
});
