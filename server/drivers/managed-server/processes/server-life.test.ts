import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QueryFailed } from '../../../databases/engine.ts';
import { FakeClock } from '../../../platform/clock.ts';
import { AppError, hostDiskFull } from '../../../platform/errors.ts';
import { ServerWork } from './server-life.ts';

const tooLong = () => new AppError('query_timeout', 'The statement ran for too long and was stopped');

test('a statement whose session was ended says why, and no other does', async () => {
  const work = new ServerWork(new FakeClock());
  const full = hostDiskFull();
  const failing = (error: Error, meanwhile: () => void = () => {}) =>
    work.run(async () => {
      meanwhile();
      throw error;
    }, true);
  const end = () => work.end(full);
  await assert.rejects(failing(tooLong(), end), full);
  const own = tooLong();
  await assert.rejects(failing(own), own);
  const answer = new QueryFailed('there is no such table', '1146');
  await assert.rejects(failing(answer, end), answer);
  const displace = () => void work.displace(0, 'another account waits');
  await assert.rejects(failing(tooLong(), displace), /Statements were ended.*another account waits/);
  assert.equal(work.pending, 0);
});
