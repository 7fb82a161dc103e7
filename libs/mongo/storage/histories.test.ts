import { test } from 'node:test';
import { checkHistories } from '../testing/document-histories.ts';

/** test/long/mongodb-histories.test.ts runs 10,000. */
test('300 random histories of a collection are as a plain model has them', (t) => {
  checkHistories(t, 300);
});
