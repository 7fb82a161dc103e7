import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { LogFollower } from './log-follower.ts';
import { TenantLogs } from './tenant-logs.ts';

const [OWN, OTHER] = ['d_aaaaaaaaaaaaaaaa', 'd_bbbbbbbbbbbbbbbb'];
const AT = '2026-11-22 10:00:00';

function given(t: { after(work: () => void): void }) {
  const folder = fs.mkdtempSync(join(tmpdir(), 'cloudlet-logs-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const source = join(folder, 'source');
  const follower = new LogFollower(source);
  const logs = new TenantLogs({
    folder: join(folder, 'logs'),
    source: follower,
    entriesOf: (lines) => lines.map((text) => ({ database: OWN, at: AT, text })),
  });
  return { folder, source, follower, logs };
}

test('entries go to their own database, and to nothing that is no name of ours', (t) => {
  const { folder, logs } = given(t);
  logs.add({ database: OWN, at: AT, text: 'one\n  two\n\nthree\n' });
  logs.add({ database: '../../x', at: AT, text: 'out' });
  assert.equal(logs.read(OWN, 1000), `${AT} one\n\ttwo\n\tthree\n`);
  assert.equal(logs.read(OTHER, 1000), '');
  assert.deepEqual(fs.readdirSync(join(folder, 'logs')), [`${OWN}.log`]);
});

test('whole lines of the source are taken once, from where it was when it began', (t) => {
  const { source, logs } = given(t);
  fs.writeFileSync(source, 'before\n');
  logs.begin();
  fs.appendFileSync(source, 'one\ntw');
  logs.begin();
  assert.equal(logs.read(OWN, 1000), `${AT} one\n`);
  fs.appendFileSync(source, 'o\n');
  assert.equal(logs.read(OWN, 1000), `${AT} one\n${AT} two\n`);
});

test('of a source that grows too fast the last whole lines are taken, and it is cut to nothing', (t) => {
  const { source, follower, logs } = given(t);
  fs.writeFileSync(source, '');
  logs.begin();
  fs.appendFileSync(source, `${'y'.repeat(2 * 2 ** 20)}\nlast\n`);
  assert.equal(logs.read(OWN, 10_000), `${AT} last\n`);
  fs.appendFileSync(source, 'unfinished'.repeat(2_000_000));
  follower.trim();
  assert.equal(fs.statSync(source).size, 0);
  fs.appendFileSync(source, 'a piece of it\nnext\n');
  assert.equal(logs.read(OWN, 10_000), `${AT} last\n${AT} next\n`);
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
