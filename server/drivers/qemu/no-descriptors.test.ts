/** A process that cannot open more files, or only a few. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { noQemu } from '../../testing/qemu-fixture.ts';

const from = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);
/** Tries everything that runs a program, with none, one, two … descriptors left, and then with enough. */
const SCRIPT = `
  import { spawn } from 'node:child_process';
  import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
  import { KeeperShells } from ${from('../host-process/keeper-shells.ts')};
  import { AccelProbe } from ${from('./probe.ts')};
  import { ImageLibrary } from ${from('./images/image-library.ts')};
  import { QemuPrograms } from ${from('./program.ts')};
  import { hostBootId, isAlive, readStat, signalProcess } from ${from('../host-process/process-identity.ts')};
  import { systemClock } from ${from('../../platform/clock.ts')};
  import { newId } from ${from('../../platform/ids.ts')};
  const directory = mkdtempSync('/tmp/cloudlet-none-');
  const program = await new QemuPrograms().system();
  const imageId = newId('img', systemClock);
  const images = new ImageLibrary({ clock: systemClock, directory, uid: null, program: async () => '/usr/bin/qemu-img' });
  const probe = new AccelProbe({ directory, clock: systemClock, uid: null, device: '/dev/null' });
  const sleeper = spawn('/bin/sleep', ['600'], { stdio: 'ignore' });
  const identity = {
    pid: sleeper.pid, startTime: readStat(sleeper.pid).startTime, bootId: hostBootId(), uid: null };
  const options = { maxVirtualBytes: 2 ** 30, signal: new AbortController().signal };
  const seen = { alive: [], signalled: [], shells: 0, probed: '' };
  async function everything() {
    const shells = new KeeperShells();
    await shells.take().then((shell) => { seen.shells++; shell.dismiss(); }, () => {});
    probe.current(program);
    await probe.whenIdle();
    seen.probed = probe.current(program).reason;
    await images.stage(imageId).then((stage) => stage.write(new Uint8Array(65536)).then(() => stage.close()))
      .then(() => images.import(imageId, options)).catch(() => {});
    shells.close();
  }
  for (let free = 0; free < 14; free++) {
    const held = [];
    try { for (;;) held.push(openSync('/dev/null')); } catch {}
    if (free === 0) {
      seen.alive.push(isAlive(identity));
      seen.signalled.push(signalProcess(identity, 'SIGTERM'));
    }
    for (let given = 0; given < free; given++) closeSync(held.pop());
    await everything();
    for (const fd of held) closeSync(fd);
  }
  seen.shells = 0;
  await everything();
  await probe.close();
  seen.alive.push(isAlive(identity));
  seen.signalled.push(signalProcess(identity, 'SIGKILL'));
  await new Promise((resolve) => sleeper.once('exit', resolve));
  seen.alive.push(isAlive(identity));
  rmSync(directory, { recursive: true });
  console.log(JSON.stringify(seen));`;

test('gets errors, lives on, takes no guest for dead, and does all of it later', { skip: noQemu }, () => {
  const node = [process.execPath, '--input-type=module', '-e', SCRIPT];
  const words = ['-c', 'ulimit -n 90; exec "$@"', 'sh', ...node];
  const { stdout, stderr } = spawnSync('/bin/sh', words, { encoding: 'utf8' });
  assert.equal(stderr, '');
  const { probed, ...seen } = JSON.parse(stdout) as { probed: string };
  assert.deepEqual(seen, { alive: [true, true, false], signalled: [false, true], shells: 1 });
  assert.doesNotMatch(probed, /could not be tested/);
});
