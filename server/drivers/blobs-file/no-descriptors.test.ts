/** A process that cannot open more files, and has no storage thread yet. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const from = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);
const SCRIPT = `
  import { closeSync, openSync } from 'node:fs';
  import { setTimeout as sleep } from 'node:timers/promises';
  import { FileBlobStore } from ${from('./blobs-file.ts')};
  import { Alarms } from ${from('../../platform/alarms.ts')};
  import { systemClock } from ${from('../../platform/clock.ts')};
  const [, , directory] = process.argv;
  const diskSpace = { assertSpace() {}, isLow: () => false, isOut: () => false };
  const blobs = await FileBlobStore.open(
    { directory, threads: 2, directWrites: 2, clock: systemClock, alarms: new Alarms(systemClock), diskSpace });
  const store = async () => {
    const writer = await blobs.create({ dataKey: null });
    try {
      await writer.write(new Uint8Array(200_000));
      await writer.finish();
      return 'stored';
    } catch ({ code, hint }) {
      await writer.abort();
      return code + ': ' + hint;
    }
  };
  const seen = [];
  for (const free of [0, 3, 6]) {
    const held = [];
    try { for (;;) held.push(openSync('/dev/null')); } catch {}
    for (let given = 0; given < free; given++) closeSync(held.pop());
    seen.push(await store());
    for (const fd of held) closeSync(fd);
  }
  while (await store() !== 'stored') await sleep(50);
  await blobs.close();
  console.log(JSON.stringify(seen));`;

test('uploads are refused as overloaded until there are descriptors', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-none-'));
  t.after(() => rmSync(folder, { recursive: true }));
  // In a file: threads inherit the options with which the process was started.
  const file = join(folder, 'script.mjs');
  writeFileSync(file, SCRIPT);
  const words = ['-c', 'ulimit -n 60; exec "$@"', 'sh', process.execPath, file, folder];
  const { stdout, stderr } = spawnSync('/bin/sh', words, { encoding: 'utf8', timeout: 60_000 });
  assert.equal(stderr, '');
  const [first, ...others] = JSON.parse(stdout) as string[];
  assert.match(first ?? '', /^overloaded: Retry; .*LimitNOFILE/);
  for (const outcome of others) assert.match(outcome, /^(?:stored$|overloaded: )/);
});
