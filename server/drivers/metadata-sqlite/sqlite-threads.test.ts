import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Reads } from '../../metadata/metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import { FakeClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { SqliteMetadata } from './sqlite-metadata.ts';
import { SqliteThreads } from './sqlite-threads.ts';

type Job = (reads: Reads, input: unknown) => unknown;

async function open(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-threads-'));
  const clock = new FakeClock();
  const metadata = await SqliteMetadata.open({ directory, clock, alarms: new Alarms(clock) });
  const threads = new SqliteThreads({ directory });
  t.after(async () => {
    await threads.close();
    await metadata.close();
    rmSync(directory, { recursive: true });
  });
  /** A module that runs `body` with `reads` and `input`. */
  const moduleOf = (body: string): URL => {
    const path = join(directory, `job-${++made}.mjs`);
    writeFileSync(path, `export async function run(reads, input) { ${body} }`);
    return pathToFileURL(path);
  };
  let made = 0;
  const run = (module: URL, input: unknown) => threads.run<Job>(module, input);
  return { metadata, threads, moduleOf, run };
}

const INSERT = 'INSERT INTO secrets (name, sealed) VALUES (?, ?)';

test('a thread sees every commit that was resolved before, exactly', async (t) => {
  const { metadata, run, moduleOf } = await open(t);
  const large = 2n ** 60n + 1n;
  await metadata.commit([{ sql: INSERT, params: ['one', new Uint8Array(3)] }]);
  const job = moduleOf(
    'return reads.all(`SELECT name, ? AS large FROM secrets WHERE name = ?`, input.large, input.name)',
  );
  assert.deepEqual(await run(job, { large, name: 'one' }), [{ name: 'one', large }]);
  await metadata.commit([{ sql: INSERT, params: ['two', new Uint8Array(3)] }]);
  assert.equal(((await run(job, { large, name: 'two' })) as unknown[]).length, 1);
});

test('a thread cannot write', async (t) => {
  const { run, moduleOf } = await open(t);
  const job = moduleOf('return reads.all("DELETE FROM secrets RETURNING name")');
  await assert.rejects(run(job, null), /readonly/);
});

test('what a module throws, and one that is not there, reject the call and no other', async (t) => {
  const { run, moduleOf } = await open(t);
  const good = run(moduleOf('return reads.get("SELECT 7 AS seven").seven'), null);
  await assert.rejects(run(moduleOf('throw new RangeError("not so")'), null), /not so/);
  await assert.rejects(run(new URL('file:///nowhere/job.mjs'), null), /nowhere/);
  assert.equal(await good, 7);
});

test('close ends what runs, and refuses what comes later', async (t) => {
  const { threads, run, moduleOf } = await open(t);
  const endless = moduleOf('for (;;) reads.get("SELECT 1")');
  const running = assert.rejects(run(endless, null), (error) => isAppError(error, 'shutting_down'));
  await threads.close();
  await running;
  await assert.rejects(run(endless, null), (error) => isAppError(error, 'shutting_down'));
});
