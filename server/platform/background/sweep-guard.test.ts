import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Alarms } from '../alarms.ts';
import { systemClock } from '../clock.ts';
import { SweepGuard } from './sweep-guard.ts';

const sweep = { folder: 'blobs', what: 'object files', found: 200, unnamed: 150 };

function open(own: Partial<ConstructorParameters<typeof SweepGuard>[0]> = {}) {
  const alarms = new Alarms(systemClock);
  return { alarms, guard: new SweepGuard({ alarms, isOurs: async () => true, ...own }) };
}

test('the alarm names the folder and the file where they are those of the data directory', async () => {
  const { alarms, guard } = open();
  assert.equal(await guard.allows(sweep), false);
  const [alarm] = alarms.list();
  assert.equal(alarm?.code, 'sweep_stopped_blobs');
  assert.match(
    `${alarm.detail}; ${alarm.fix}`,
    /150 of 200 .* in metadata\.db: .*from the folder blobs by hand/,
  );
  assert.equal(await guard.allows({ ...sweep, unnamed: 100 }), true);
  assert.deepEqual(alarms.list(), []);
});

test('with the bytes in a bucket and the rows in PostgreSQL, it names these', async () => {
  for (const isOurs of [true, false]) {
    const { alarms, guard } = open({
      isOurs: async () => isOurs,
      rowsPlace: 'the database',
      placeOf: (folder) => (folder === 'blobs' ? 'the bucket s3://h/b' : undefined),
    });
    assert.equal(await guard.allows(sweep), false);
    const text = JSON.stringify(alarms.list());
    assert.match(text, /the bucket s3:\/\/h\/b.*/);
    assert.match(text, /the database/);
    assert.doesNotMatch(text, /folder|metadata\.db/);
    await guard.allows({ ...sweep, folder: 'vms' });
    assert.match(JSON.stringify(alarms.list()[1]), /the folder vms/);
  }
});
