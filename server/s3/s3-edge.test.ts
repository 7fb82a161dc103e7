import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isKnownAction } from './access/known-actions.ts';
import { OPERATIONS } from './s3-edge.ts';

const WALKED = new URL('../../test/acceptance/s3-operations.ts', import.meta.url);

const CHANGES = ['storage:write', 'storage:append', 'storage:admin'];

test('what reads needs a key that may read, what changes something one that may, copies both', () => {
  for (const { name, method, header, permission, sourcePermission } of OPERATIONS) {
    const isRead = method === 'GET' || method === 'HEAD';
    assert.ok((isRead ? ['storage:read'] : CHANGES).includes(permission), name);
    assert.equal(sourcePermission, header === 'x-amz-copy-source' ? 'storage:read' : undefined, name);
  }
});

test('every operation has an action of AWS', () => {
  for (const { name, action, level } of OPERATIONS) {
    assert.match(action, /^s3:(?:[A-Z][a-z]+)+(?:CORS)?$/, name);
    if (level === 'object') assert.match(action, /Object|Upload/, name);
    const isService = level === 'service';
    assert.equal(
      isKnownAction((known) => known === action),
      !isService,
      name,
    );
  }
});

test('every operation is one that the test of permissions walks', () => {
  const walked = readFileSync(WALKED, 'utf8');
  for (const { name } of OPERATIONS) {
    const [, absent] = /^GetBucket-(.+)$/.exec(name) ?? [];
    assert.match(
      walked,
      absent === undefined ? new RegExp(`^  ${name}: `, 'm') : new RegExp(`'${absent}'`),
      name,
    );
  }
});

test('a more special operation comes before a more general one', () => {
  for (const [at, { name, method, level, query = [], header }] of OPERATIONS.entries()) {
    const hidden = OPERATIONS.slice(0, at).find(
      (before) =>
        before.method === method &&
        before.level === level &&
        (before.header === undefined || before.header === header) &&
        (before.query ?? []).every((each) => query.includes(each)),
    );
    assert.equal(hidden, undefined, `${hidden?.name} hides ${name}`);
  }
});
