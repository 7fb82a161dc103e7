import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { noGuestUsers, testUidBase } from '../../testing/own-ground.ts';

const FROM = JSON.stringify(new URL('./process-identity.ts', import.meta.url).href);
/** Ends all processes of a user, with no descriptor left, twice. */
const SCRIPT = `
  import { spawn } from 'node:child_process';
  import { once } from 'node:events';
  import { closeSync, openSync } from 'node:fs';
  import { endProcessesOf } from ${FROM};
  const uid = ${testUidBase()};
  const held = [];
  const holdAll = () => { try { for (;;) held.push(openSync('/dev/null')); } catch {} };
  const sleeperOf = () => spawn('/bin/sleep', ['600'], { uid, gid: uid, stdio: 'ignore', cwd: '/' });
  const seen = [await endProcessesOf(uid, 3000)];
  for (const round of [1, 2]) {
    const sleeper = sleeperOf();
    await once(sleeper, 'spawn');
    holdAll();
    const gone = once(sleeper, 'exit');
    seen.push(await endProcessesOf(uid, 3000), (await gone)[1]);
    for (const fd of held.splice(0)) closeSync(fd);
  }
  console.log(JSON.stringify(seen));`;

test('what runs as a user is found and ended also when no file may be opened', { skip: noGuestUsers }, () => {
  const node = [process.execPath, '--input-type=module', '-e', SCRIPT];
  const words = ['-c', 'ulimit -n 90; exec "$@"', 'sh', ...node];
  const { stdout, stderr } = spawnSync('/bin/sh', words, { encoding: 'utf8' });
  assert.equal(stderr, '');
  assert.deepEqual(JSON.parse(stdout), [true, true, 'SIGKILL', true, 'SIGKILL']);
});
