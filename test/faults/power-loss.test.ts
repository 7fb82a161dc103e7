/** The disk loses all unsynced data, in the middle of work: acknowledged data exists. */
import { spawn } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { Checker } from './check.ts';
import { chooseSeed, Load, makeBuckets, randomFrom, rounds } from './load.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';
import { Oracle } from './oracle.ts';

const ROUNDS = rounds(2, 100);
const DISK_BYTES = 2 * 2 ** 30;
const env = { CLOUDLET_RATE_REQUESTS: '1000000', CLOUDLET_SWEEP_GRACE_SECONDS: '1' };
const skip = noLoopDisk();

async function survive(t: TestContext, mode: 1 | 2): Promise<void> {
  const disk = new LoopDisk(DISK_BYTES);
  // Processes in separate mount namespaces, such as servers of databases, have copies of the mount.
  const other = spawn('unshare', ['--mount', 'sleep', '600'], { stdio: 'ignore' });
  t.after(() => other.kill());
  t.after(() => disk.remove());
  const dataDir = `${disk.mountPoint}/data`;
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const oracle = new Oracle();
  const checker = new Checker(oracle);
  const cloud = await CloudProcess.start({ dataDir, env });
  // Before the disk is removed: t.after runs in order.
  try {
    const { key } = await new Client(cloud.api).newUser();
    await makeBuckets(new Client(cloud.api, key));
    for (let round = 0; round < ROUNDS; round++) {
      const load = new Load({ client: new Client(cloud.api, key), oracle, random });
      load.start();
      await sleep(300 + random() * 1200);
      await disk.cutPower(mode, () => oracle.setPower(false));
      await sleep(random() * 100);
      await cloud.crash();
      await load.stop();
      disk.unmount();
      disk.mount();
      oracle.setPower(true);
      await cloud.start();
      await checker.check(new Client(cloud.api, key));
    }
    await checker.check(new Client(cloud.api, key), { allBytes: true });
    t.diagnostic(`${oracle.count('acked')} writes acknowledged, none lost in ${ROUNDS} power cuts`);
  } finally {
    await cloud.crash();
  }
  oracle.close();
}

test('power loss with the journal flushed loses nothing acknowledged', { skip }, (t) => survive(t, 1));

test('power loss with the journal lost loses nothing acknowledged', { skip }, (t) => survive(t, 2));
