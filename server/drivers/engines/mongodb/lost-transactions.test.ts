/** Labels of errors after which a driver may retry, by the specification of transactions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serialize } from 'bson';
import { CommandError } from '../../../../libs/mongo/index.ts';
import { asLostCommand } from './lost-transactions.ts';

test('a lost transaction may be run again, and of a lost commit the result is unknown', () => {
  const labelsOf = (command: object) => {
    const sections = Buffer.concat([Buffer.alloc(1), serialize({ ...command, $db: 'shop' })]);
    return asLostCommand(new CommandError(11601, 'gone'), sections).reply().errorLabels;
  };
  const part = { txnNumber: 1, autocommit: false };
  assert.deepEqual(labelsOf({ find: 'a', ...part }), ['TransientTransactionError']);
  assert.deepEqual(labelsOf({ commitTransaction: 1, ...part }), ['UnknownTransactionCommitResult']);
  assert.equal(labelsOf({ find: 'a' }), undefined);
  assert.equal(asLostCommand(new CommandError(11601, 'gone'), Buffer.from('x')).code, 11601);
});
