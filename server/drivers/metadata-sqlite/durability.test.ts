/**
 * Acknowledged commits survive kills, a full disk and a failing disk. Child processes write to real files.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { notInstalled } from '../../../scripts/installed.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { openWriter } from './connection.ts';
import { SqliteMetadata } from './sqlite-metadata.ts';

const CHILD = fileURLToPath(new URL('../../testing/durability-child.ts', import.meta.url));

function directoryFor(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-durability-'));
  t.after(() => rmSync(directory, { recursive: true }));
  return directory;
}

async function open(directory: string) {
  const alarms = new Alarms(systemClock);
  return { alarms, metadata: await SqliteMetadata.open({ directory, clock: systemClock, alarms }) };
}

/**
 * Runs a writing child, kills it `ms` after its first acknowledgement, and returns the numbers it
 * acknowledged. They go to a file, which takes them however busy this process is: Node makes the pipe of a
 * process with threads non-blocking, so that a child whose reader paused died of EAGAIN.
 */
async function killedWriter(directory: string, mode: string, ms: number): Promise<number[]> {
  const path = join(directory, 'acknowledged');
  const output = openSync(path, 'w');
  const child = spawn(process.execPath, [CHILD, directory, mode], { stdio: ['ignore', output, 'pipe'] });
  assert.ok(child.stderr);
  const said = text(child.stderr);
  const closed = once(child, 'close');
  closeSync(output);
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  while (statSync(path).size === 0 && !hasEnded()) await delay(1);
  await delay(ms);
  child.kill('SIGKILL');
  await closed;
  assert.equal(child.signalCode, 'SIGKILL', `the writer ended by itself: ${await said}`);
  // The last line may be incomplete.
  const lines = readFileSync(path, 'latin1');
  return lines.slice(0, lines.lastIndexOf('\n')).split('\n').filter(Boolean).map(Number);
}

/** Numbers acknowledged but incomplete in the database: every commit has two rows. */
async function lost(directory: string, acknowledged: readonly number[]): Promise<number[]> {
  const { metadata } = await open(directory);
  const names = metadata.all<{ n: number }>('SELECT CAST(name AS INTEGER) AS n FROM settings ORDER BY n');
  const blobs = metadata.all<{ n: number }>('SELECT checksum AS n FROM blobs ORDER BY n');
  assert.deepEqual(names, blobs, 'a commit is there whole or not at all');
  assert.deepEqual(metadata.all('PRAGMA integrity_check'), [{ integrity_check: 'ok' }]);
  await metadata.close();
  const there = new Set(names.map((row) => row.n));
  return acknowledged.filter((n) => !there.has(n));
}

test('kill -9 at any moment loses nothing acknowledged', async (t) => {
  const directory = directoryFor(t);
  const acknowledged: number[] = [];
  // On a slow disk more rounds are necessary to have this much at risk.
  for (let round = 0; round < 10 || acknowledged.length <= 1000; round++) {
    acknowledged.push(...(await killedWriter(directory, 'honest', 20 + 17 * round)));
    assert.deepEqual(await lost(directory, acknowledged), []);
  }
  t.diagnostic(`${acknowledged.length} acknowledged commits survived the kills`);
});

test('the same test goes red for a writer that acknowledges before COMMIT', async (t) => {
  // Chance decides whether a kill comes between an acknowledgement and its commit, more often on a busy host.
  for (let round = 0; round < 100; round++) {
    const directory = directoryFor(t);
    const acknowledged = await killedWriter(directory, 'hasty', 30 + 10 * (round % 10));
    if ((await lost(directory, acknowledged)).length > 0) return;
  }
  assert.fail('a writer that lies was not caught');
});

const isRoot = process.getuid?.() === 0;

/** Its own small disk, or null if we may not mount. */
function smallDisk(t: TestContext, sizeBytes: number): string | null {
  const mountPoint = mkdtempSync(join(tmpdir(), 'cloudlet-small-disk-'));
  const mounted =
    isRoot &&
    spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeBytes}`, 'tmpfs', mountPoint]).status === 0;
  t.after(() => {
    if (mounted) spawnSync('umount', [mountPoint]);
    rmSync(mountPoint, { recursive: true });
  });
  if (!mounted) t.skip(notInstalled('mount') || 'mounting a small disk needs root');
  return mounted ? mountPoint : null;
}

test('a full disk stores nothing, says so, and works again when there is space', async (t) => {
  const disk = smallDisk(t, 8 * 2 ** 20);
  if (disk === null) return;
  const { metadata, alarms } = await open(disk);
  const put = (n: number) =>
    metadata.commit([
      { sql: 'INSERT INTO settings (name, value) VALUES (?, ?)', params: [String(n), 'v'] },
      { sql: 'INSERT INTO blobs (size_bytes, data) VALUES (0, ?)', params: [Buffer.alloc(4096)] },
    ]);
  await put(0);
  const filler = join(disk, 'filler');
  writeFileSync(filler, Buffer.alloc(5 * 2 ** 20));
  const stored = new Set([0]);
  let refused = 0;
  for (let n = 1; refused < 20; n += 8) {
    const batch = Array.from({ length: 8 }, (_, i) => n + i);
    const outcomes = await Promise.allSettled(batch.map(put));
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') stored.add(n + i);
      else {
        assert.ok(isAppError(outcome.reason, 'out_of_space'), String(outcome.reason));
        refused++;
      }
    }
  }
  const there = () =>
    new Set(metadata.all<{ name: string }>('SELECT name FROM settings').map((row) => Number(row.name)));
  assert.deepEqual(there(), stored, 'reads go on, and show what was acknowledged');
  assert.deepEqual(
    alarms.list().map((alarm) => alarm.code),
    ['metadata_out_of_space'],
  );
  rmSync(filler);
  await put(1_000_000);
  assert.deepEqual(there(), stored.add(1_000_000));
  assert.deepEqual(alarms.list(), []);
  await metadata.close();
  const again = await open(disk);
  assert.deepEqual(again.metadata.all('PRAGMA integrity_check'), [{ integrity_check: 'ok' }]);
  assert.equal(again.metadata.all('SELECT name FROM settings').length, stored.size);
  await again.metadata.close();
});

test('after a failed fsync nothing is acknowledged, reads go on, and a restart heals', async (t) => {
  const skip = notInstalled('strace');
  if (skip) return t.skip(skip);
  const directory = directoryFor(t);
  const first = await open(directory);
  await first.metadata.close();
  const log = join(directory, 'strace.log');
  const inject = [
    '-f',
    '-o',
    log,
    '-e',
    'trace=fsync,fdatasync',
    '-e',
    'inject=fsync,fdatasync:error=EIO:when=12+',
  ];
  const child = spawnSync('strace', [...inject, process.execPath, CHILD, directory, 'failing'], {
    encoding: 'utf8',
  });
  const report = JSON.parse(child.stdout) as {
    acknowledged: number[];
    codes: string[];
    alarms: string[];
    read: number;
  };
  assert.ok(report.acknowledged.length > 0 && report.acknowledged.length < 100, child.stdout);
  assert.deepEqual([...new Set(report.codes)], ['read_only']);
  assert.deepEqual(report.alarms, ['metadata_write_failed']);
  assert.ok(report.read >= report.acknowledged.length);
  assert.ok(existsSync(log));
  assert.deepEqual(await lost(directory, report.acknowledged), []);
});

test('another writer that holds the database for long is a refusal, not a hang', async (t) => {
  const directory = directoryFor(t);
  const { metadata } = await open(directory);
  const other = openWriter(directory);
  other.exec('BEGIN IMMEDIATE');
  const put = { sql: "INSERT INTO settings VALUES ('a', 'b')", params: [] };
  await assert.rejects(metadata.commit([put]), { code: 'overloaded' });
  other.exec('ROLLBACK');
  other.close();
  await metadata.commit([put]);
  await metadata.close();
});
