import { test } from 'node:test';
import { checkHistories } from '../../libs/mongo/testing/document-histories.ts';

test('10,000 random histories of a collection are as a plain model has them', (t) => {
  checkHistories(t, 10_000);
});
