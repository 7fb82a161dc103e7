import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OwnReport, readReport, reportText } from './node-rows.ts';

const NOTHING = { load: null, ports: null, portsSeen: null, passed: [] };

const alarm = (code: string, detail: string) => ({
  code,
  detail,
  fix: 'mend it',
  since: '2026-01-01 00:00:00',
});

test('a report is read as it was written, and is stored only when it has changed', () => {
  const report = {
    alarms: [alarm('a', 'x')],
    load: { uptimeSeconds: 1, cpu: 2, memory: 3, residentBytes: 4 },
    ports: { place: 'p', addresses: ['*'], of: { postgresql: '25432-25433' }, version: 7 },
    portsSeen: null,
    passed: ['job:a'],
  };
  assert.deepEqual(readReport(reportText(report)), report);
  const own = new OwnReport();
  own.of = () => report;
  const text = own.changed() ?? '';
  assert.equal(own.changed(), text);
  own.stored(text);
  assert.equal(own.changed(), null);
});

test('of more than 16 KiB the words for accounts go first, then the last alarms', () => {
  const accounts = Object.fromEntries(
    Array.from({ length: 200 }, (_, i) => [i, { detail: 'd'.repeat(100), fix: 'f' }]),
  );
  const many = reportText({ alarms: [{ ...alarm('a', 'x'), accounts }, alarm('b', 'y')], ...NOTHING });
  assert.deepEqual(readReport(many).alarms, [alarm('a', 'x'), alarm('b', 'y')]);
  const long = reportText({
    alarms: [alarm('a', 'ü'.repeat(5000)), alarm('b', 'ü'.repeat(5000))],
    ...NOTHING,
  });
  assert.ok(Buffer.byteLength(long) <= 16_384);
  assert.deepEqual(
    readReport(long).alarms.map(({ code }) => code),
    ['a'],
  );
});

test('what another version wrote is nothing, and no failure', () => {
  for (const text of ['', 'null', '{"alarms":7}', '[]'])
    assert.deepEqual(readReport(text), { alarms: [], ...NOTHING });
});
