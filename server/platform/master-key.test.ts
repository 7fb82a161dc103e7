import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { MasterKeys } from './master-key.ts';

function directoryFor(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-keys-'));
  t.after(() => rmSync(directory, { recursive: true }));
  return directory;
}

const secret = Buffer.from('a secret');

test('what is sealed opens again, also after a restart, and never looks the same', (t) => {
  const dataDir = directoryFor(t);
  const keys = MasterKeys.open({ dataDir, mayCreate: true, cloudId: 'cld-test' });
  const sealed = keys.seal(secret, 'here');
  assert.notDeepEqual(keys.seal(secret, 'here'), sealed);
  assert.equal(sealed.includes(secret), false);
  const again = MasterKeys.open({ dataDir, mayCreate: false, cloudId: 'cld-test' });
  assert.deepEqual(again.unseal(sealed, 'here'), secret);
  assert.deepEqual(again.unseal(keys.seal(new Uint8Array(0), 'x'), 'x'), Buffer.alloc(0));
  assert.equal(statSync(join(dataDir, 'master.key')).mode & 0o777, 0o600);
});

test('any flipped bit, any cut and any other context is damage', (t) => {
  const keys = MasterKeys.open({ dataDir: directoryFor(t), mayCreate: true, cloudId: 'cld-test' });
  const sealed = keys.seal(secret, 'here');
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const flipped = Buffer.from(sealed);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    assert.throws(() => keys.unseal(flipped, 'here'), { code: 'data_corrupted' }, `bit ${bit}`);
  }
  for (let length = 0; length < sealed.length; length++) {
    assert.throws(() => keys.unseal(sealed.subarray(0, length), 'here'), { code: 'data_corrupted' });
  }
  assert.throws(() => keys.unseal(sealed, 'there'), { code: 'data_corrupted' });
});

test('a new key seals from now on, the old one opens until it is retired', (t) => {
  const dataDir = directoryFor(t);
  const keys = MasterKeys.open({ dataDir, mayCreate: true, cloudId: 'cld-test' });
  const old = keys.seal(secret, 'x');
  const oldId = keys.currentId;
  const id = keys.addKey();
  assert.equal(keys.keyIdOf(keys.seal(secret, 'x')), id);
  assert.equal(keys.keyIdOf(old), oldId);
  assert.deepEqual(
    MasterKeys.open({ dataDir, mayCreate: false, cloudId: 'cld-test' }).unseal(old, 'x'),
    secret,
  );
  assert.throws(() => keys.retire(id), /current/);
  keys.retire(oldId);
  assert.throws(() => keys.unseal(old, 'x'), { code: 'data_corrupted' });
  assert.deepEqual(MasterKeys.open({ dataDir, mayCreate: false, cloudId: 'cld-test' }).ids(), [id]);
});

test('a missing, open or damaged key file is refused with what to do', (t) => {
  const dataDir = directoryFor(t);
  const path = join(dataDir, 'master.key');
  const open = () => MasterKeys.open({ dataDir, mayCreate: false, cloudId: 'cld-test' });
  assert.throws(open, /master\.key is missing, but the database has values sealed with it: restore/);
  MasterKeys.open({ dataDir, mayCreate: true, cloudId: 'cld-test' });
  const good = readFileSync(path, 'utf8');
  chmodSync(path, 0o640);
  assert.throws(open, /other users can read .* \(mode 640\): run chmod 600/);
  chmodSync(path, 0o600);
  const file = JSON.parse(good) as { current: string; keys: Record<string, string> };
  const bad = [
    '',
    '{',
    'null',
    '{}',
    '[]',
    good.slice(0, -10),
    JSON.stringify({ ...file, current: 'ffffffffffffffff' }),
    JSON.stringify({ ...file, keys: { [file.current]: 'c2hvcnQ=' } }),
    JSON.stringify({ ...file, keys: { ...file.keys, 'not hex': file.keys[file.current] } }),
  ];
  for (const text of bad) {
    writeFileSync(path, text);
    assert.throws(open, /is not a master key file/, text);
    assert.throws(
      () => MasterKeys.open({ dataDir, mayCreate: true, cloudId: 'cld-test' }),
      /is not a master key file/,
    );
    assert.equal(readFileSync(path, 'utf8'), text, 'a damaged file is never overwritten');
  }
});
