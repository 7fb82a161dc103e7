import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startProgram } from './host-programs.ts';

test('a program that runs has all of its streams, and nothing that it said is lost', async () => {
  const child = await startProgram('/bin/sh', ['-c', 'read line; echo "heard $line"'], { stdio: 'pipe' });
  child.stdin?.end('this\n');
  let text = '';
  for await (const piece of child.stdout ?? []) text += piece;
  assert.equal(text, 'heard this\n');
});

test('a program that is missing is an error to its caller', async () => {
  await assert.rejects(startProgram('/no/such/program', [], {}), { code: 'ENOENT' });
});

test('a signal that ends it is heard as its end', async () => {
  const stop = new AbortController();
  const child = await startProgram('/bin/sleep', ['60'], { signal: stop.signal, killSignal: 'SIGKILL' });
  const exit = new Promise((resolve) => {
    child.once('exit', (_status, signal) => resolve(signal));
  });
  stop.abort();
  assert.equal(await exit, 'SIGKILL');
});

test('a process without file descriptors is told so, and lives on', () => {
  const path = fileURLToPath(new URL('host-programs.ts', import.meta.url));
  const script = `
    import { openSync } from 'node:fs';
    import { startProgram } from ${JSON.stringify(path)};
    const codes = [];
    try { for (;;) openSync('/dev/null'); } catch {}
    for (const stdio of ['pipe', 'ignore', ['pipe', 'ignore', 'ignore', 'pipe']]) {
      await startProgram('/bin/true', [], { stdio }).catch(({ code }) => codes.push(code));
    }
    console.log(codes.join(' '));`;
  const node = [process.execPath, '--input-type=module-typescript', '-e', script];
  const run = spawnSync('/bin/sh', ['-c', 'ulimit -n 100; exec "$@"', 'sh', ...node], { encoding: 'utf8' });
  assert.equal(run.stdout, 'EMFILE EMFILE EMFILE\n', run.stderr);
});
