import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Alarms } from '../../platform/alarms.ts';
import { FakeClock } from '../../platform/clock.ts';
import { ArchiveProblems } from './archive-problems.ts';

const LATE_MS = 300_001;

test('an alarm tells of what lasts, from its first failure on, until it is over', () => {
  const clock = new FakeClock();
  const alarms = new Alarms(clock);
  const problems = new ArchiveProblems(clock);
  const told = () => {
    problems.tell(alarms);
    return alarms.list().map(({ detail }) => detail);
  };
  problems.note('postgresql-7', new Error('the disk is full'));
  assert.deepEqual([told(), problems.of('postgresql-7')], [[], 'the disk is full']);
  clock.advance(LATE_MS);
  problems.note('postgresql-7', new Error('the disk is still full'));
  problems.note('postgresql-8', new Error('new'));
  assert.deepEqual(told(), [
    'The log of 1 database servers, first postgresql-7 is not archived: the disk is still full',
  ]);
  problems.clear('postgresql-7');
  assert.deepEqual([told(), problems.of('postgresql-7'), problems.of('postgresql-8')], [[], null, 'new']);
});

test('a target that cannot be used is a problem of every server', () => {
  const clock = new FakeClock();
  const alarms = new Alarms(clock);
  const problems = new ArchiveProblems(clock);
  problems.noteAll(new Error('it is not mounted'));
  assert.equal(problems.of('postgresql-7'), 'it is not mounted');
  clock.advance(LATE_MS);
  problems.tell(alarms);
  assert.match(alarms.list()[0]?.detail ?? '', /^The log of any database server is not archived/);
  problems.clearAll();
  problems.tell(alarms);
  assert.deepEqual([alarms.list(), problems.of('postgresql-7')], [[], null]);
});
