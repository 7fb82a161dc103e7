/** Extended JSON as written by programs of different ages. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deserialize } from 'bson';
import { bsonOf, exactJson } from './extended-json.ts';

const read = (text: string) => exactJson(deserialize(bsonOf(JSON.parse(text)), { promoteValues: false }));

test('values of mongoexport before 4.2 are those of today', () => {
  const old = `{"_id":{"$oid":"5a68fdc3615eda645bc6bdec"},"d":{"$date":1514764800000},"n":{"$numberLong":"5"},
    "b":{"$binary":"AAE=","$type":"00"},"u":{"$binary":"AAE=","$type":"80"},"t":{"$timestamp":{"t":1,"i":2}},
    "r":{"$regex":"a","$options":"i"},"f":1.5,"k":{"$minKey":1}}`;
  const now = `{"_id":{"$oid":"5a68fdc3615eda645bc6bdec"},"d":{"$date":"2018-01-01T00:00:00.000Z"},"n":{"$numberLong":"5"},
    "b":{"$binary":{"base64":"AAE=","subType":"00"}},"u":{"$binary":{"base64":"AAE=","subType":"80"}},
    "t":{"$timestamp":{"t":1,"i":2}},"r":{"$regularExpression":{"pattern":"a","options":"i"}},"f":1.5,"k":{"$minKey":1}}`;
  assert.deepEqual(read(old), read(now));
  assert.deepEqual((read(old) as { b: unknown }).b, { $binary: { base64: 'AAE=', subType: '00' } });
  assert.throws(() => read('{"d":{"$date":"never"}}'), /\$date is not a date/);
});

test('values of today stay what they are: dates far away, whole numbers of 64 bits', () => {
  const dates = `{"early":{"$date":{"$numberLong":"-126230400000"}},"late":{"$date":{"$numberLong":"253402300800000"}}}`;
  assert.deepEqual(read(dates), JSON.parse(dates));
  const canonical = '{"at":{"$date":{"$numberLong":"1514764800000"}}}';
  assert.deepEqual(read(canonical), { at: { $date: '2018-01-01T00:00:00.000Z' } });
  assert.deepEqual(read('{"n":1700000000000}'), { n: { $numberLong: '1700000000000' } });
  assert.deepEqual(read('{"__proto__":{"a":"x"}}'), JSON.parse('{"__proto__":{"a":"x"}}'));
});
