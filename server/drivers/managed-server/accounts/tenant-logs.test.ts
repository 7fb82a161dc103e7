import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ServerLog } from '../processes/server-log.ts';
import { TenantLogs } from './tenant-logs.ts';

const [OWN, OTHER] = ['d_aaaaaaaaaaaaaaaa', 'd_bbbbbbbbbbbbbbbb'];
const AT = '2026-11-22 10:00:00';

function given(t: { after(work: () => void): void }) {
  const folder = fs.mkdtempSync(join(tmpdir(), 'cloudlet-logs-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const logs = new TenantLogs({ folder: join(folder, 'logs') });
  return { folder, logs };
}

test('entries go to their own database, and to nothing that is no name of ours', (t) => {
  const { folder, logs } = given(t);
  logs.add({ database: OWN, at: AT, text: 'one\n  two\n\nthree\n' });
  logs.add({ database: '../../x', at: AT, text: 'out' });
  assert.equal(logs.read(OWN, 1000), `${AT} one\n\ttwo\n\tthree\n`);
  assert.equal(logs.read(OTHER, 1000), '');
  assert.deepEqual(fs.readdirSync(join(folder, 'logs')), [`${OWN}.log`]);
});

test('the log of a server is reported by its last whole lines, and cut when it is large', (t) => {
  const { folder } = given(t);
  const path = join(folder, 'source');
  const log = new ServerLog(path);
  assert.equal(log.tail(100), '');
  fs.writeFileSync(path, 'one\ntwo\nthree\n');
  assert.equal(log.tail(9), 'three\n');
  assert.equal(log.tail(1000), 'one\ntwo\nthree\n');
  log.trim();
  assert.equal(log.tail(6), 'three\n');
  fs.appendFileSync(path, 'x'.repeat(17 * 2 ** 20));
  log.trim();
  assert.equal(log.tail(6), '');
});

test('an entry, the entries of a moment, and all of them together have a size', (t) => {
  const { folder, logs } = given(t);
  for (let i = 0; i < 500; i++) logs.add({ database: OWN, at: AT, text: String(i) });
  assert.match(logs.read(OWN, 10_000), /99\n… and 400 more\n$/);
  for (let i = 0; i < 1000; i++) {
    logs.add({ database: OWN, at: AT, text: `${i} ${'x'.repeat(10_000)}` });
    if (i % 50 === 0) logs.flush();
  }
  const { size } = fs.statSync(join(folder, 'logs', `${OWN}.log`));
  assert.ok(size <= 2 ** 20 + 250_000, `${size}`);
  const read = logs.read(OWN, 10 * 2 ** 20);
  assert.match(read, /^2026-11-22 10:00:00 \d+ x+ …\n/);
  assert.match(read, /\n2026-11-22 10:00:00 999 x+ …\n$/);
});
