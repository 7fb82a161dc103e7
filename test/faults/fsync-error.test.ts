/** A disk whose fsync fails: nothing more is acknowledged, reads continue, and a restart recovers. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { contentOf } from './oracle.ts';

const MIB = 2 ** 20;
const SIZES = [0, 100, 16_384, 16_385, 300_000];
const INJECT = ['-e', 'trace=fsync,fdatasync', '-e', 'inject=fsync,fdatasync:error=EIO:when=1+'];

/** Why faults cannot be injected here, or false: the value of a test's `skip`. */
function noStrace(): string | false {
  const missing = notInstalled('strace');
  if (missing) return missing;
  const sleeper = spawn('sleep', ['60'], { stdio: 'ignore' });
  const attempt = spawnSync('timeout', ['1', 'strace', '-p', `${sleeper.pid}`], { encoding: 'utf8' });
  sleeper.kill();
  return attempt.stderr.includes(' attached') ? false : `ptrace is refused: ${attempt.stderr.trim()}`;
}

interface Fault {
  readonly strace: ChildProcess;
  readonly injected: () => number;
}

/** From the moment this resolves every fsync of the process fails. */
async function failFsync(t: TestContext, pid: number): Promise<Fault> {
  const strace = spawn('strace', ['-f', '-p', `${pid}`, ...INJECT], { stdio: ['ignore', 'ignore', 'pipe'] });
  t.after(() => strace.kill('SIGKILL'));
  let output = '';
  strace.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await eventually('strace has attached', () => / attached/.test(output) || strace.exitCode !== null);
  assert.equal(strace.exitCode, null, output);
  return { strace, injected: () => output.split('INJECTED').length - 1 };
}

/** Detaches strace: the disk seems to work again, like one that has lost the writes that failed. */
async function seemHealed({ strace }: Fault): Promise<void> {
  const exit = once(strace, 'exit');
  strace.kill('SIGTERM');
  await exit;
}

async function assertKept(client: Client, kept: ReadonlyMap<string, Buffer>): Promise<void> {
  const { status, body } = await client.call('/api/buckets/box/files');
  assert.equal(status, 200);
  const ids = new Set(body.map(({ id }: { id: string }) => id));
  for (const [id, bytes] of kept) {
    assert.ok(ids.has(id), `${id} is not listed`);
    assert.ok(bytes.equals(await client.download(id)), `${id} has other bytes`);
  }
}

async function assertRefused(client: Client, name: string, size: number): Promise<void> {
  const { status, body } = await client.upload('box', name, contentOf(90, size));
  assert.deepEqual([status, body.code], [503, 'read_only'], `${name}: ${JSON.stringify(body)}`);
}

async function assertDegraded(client: Client, alarm: string): Promise<void> {
  const ready = await client.call('/readyz');
  assert.deepEqual([ready.status, ready.body.code], [503, 'read_only']);
  assert.equal((await client.call('/healthz')).status, 200);
  const { body } = await client.call('/api/system/status');
  assert.equal(body.status, 'degraded');
  const codes = body.alarms.map(({ code }: { code: string }) => code);
  assert.ok(codes.includes(alarm), `${alarm} is not among ${codes}`);
}

for (const { what, size, alarm } of [
  { what: 'a small inline upload', size: 1000, alarm: 'metadata_write_failed' },
  { what: 'a large upload', size: MIB, alarm: 'blob_fsync_failed' },
]) {
  test(`after a failed fsync of ${what} nothing is acknowledged until a restart`, {
    skip: noStrace(),
  }, async (t) => {
    const cloud = await CloudProcess.start();
    t.after(() => cloud.stop());
    const before = await new Client(cloud.api).newUser();
    assert.equal((await before.call('/api/buckets', { json: { name: 'box' } })).status, 201);
    const kept = new Map<string, Buffer>();
    for (const [number, bytes] of SIZES.entries()) {
      const content = contentOf(number, bytes);
      const { status, body } = await before.upload('box', `kept-${number}`, content);
      assert.equal(status, 200);
      kept.set(body.object_id, content);
    }
    const { pid } = cloud;
    const fault = await failFsync(t, pid);
    await assertRefused(before, 'first', size);
    await eventually('strace tells of the failed fsync', () => fault.injected() > 0);
    await assertDegraded(before, alarm);
    await assertRefused(before, 'same size', size);
    await seemHealed(fault);
    await assertRefused(before, 'after the disk seems healed', size);
    await assertRefused(before, 'other size', size > 16_384 ? 1000 : MIB);
    await assertDegraded(before, alarm);
    await assertKept(before, kept);
    assert.equal(process.kill(pid, 0), true, 'the process lives');

    await cloud.crash();
    await cloud.start();
    const after = new Client(cloud.api, before.key);
    await assertKept(after, kept);
    assert.equal((await after.call('/readyz')).status, 200);
    assert.equal((await after.call('/api/system/status')).body.status, 'ok');
    if (size > 16_384) {
      const { body } = await after.call('/api/buckets/box/files?include_versions=true');
      assert.equal(body.length, SIZES.length, 'a refused upload became visible');
    }
    for (const bytes of [1000, MIB]) {
      const content = contentOf(50, bytes);
      const { status, body } = await after.upload('box', `again-${bytes}`, content);
      assert.equal(status, 200);
      assert.ok(content.equals(await after.download(body.object_id)));
    }
  });
}
