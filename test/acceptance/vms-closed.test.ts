/** By default the users of machines' processes cannot reach this host, even if QEMU's isolation fails. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import * as net from './private-network.ts';
import { cannotRunGuests, newVm, removeAll, sshBanner } from './vms-kit.ts';

const skip = cannotRunGuests() || net.cannotMakeNetworks();
const UID_BASE = 720_000_000;
const TABLE = `cloudlet_${UID_BASE}`;
/** The user of a guest, of the test boot, and of image conversions. */
const OURS = [0, 1, 2 ** 20 - 1, 2 ** 20, 2 ** 20 + 1, 2 ** 20 + 2].map((at) => UID_BASE + at);
const NEIGHBOURS = [UID_BASE - 1, UID_BASE + 2 ** 20 + 3];
const env = { CLOUDLET_VM_UID_BASE: String(UID_BASE) };

/** Whether a process of that user gets a connection. */
async function reaches(uid: number, host: string, port: string): Promise<boolean> {
  const words = ['2', 'bash', '-c', `exec 3<>/dev/tcp/${host}/${port}`];
  const child = spawn('timeout', words, { uid, gid: uid, cwd: '/', stdio: 'ignore' });
  const [status] = await once(child, 'exit');
  return status === 0;
}

type Endpoint = readonly [host: string, port: string];

/** All connections that one of these users gets to one of these endpoints. Tried in parallel. */
async function openConnections(uids: readonly number[], endpoints: readonly Endpoint[]): Promise<string[]> {
  const tried = uids.flatMap((uid) =>
    endpoints.map(async ([host, port]) =>
      (await reaches(uid, host, port)) ? [`${uid} ${host}:${port}`] : [],
    ),
  );
  return (await Promise.all(tried)).flat();
}

const hasRules = () => spawnSync('nft', ['list', 'table', 'inet', TABLE]).status === 0;

if (net.isInside())
  describe('in its own network', () => {
    let cloud: CloudProcess;
    let user: CheckedClient;
    let path: string;
    let address: string;
    let takeDown = () => {};
    before(async () => {
      takeDown = await net.makeOutside();
      cloud = await CloudProcess.start({ env });
      user = await CheckedClient.open(cloud.api);
      user = user.as((await user.register()).api_key);
      await eventually('the rules', async () => hasRules());
      // It boots while the isolation is tested.
      path = await newVm(user);
      address = (await user.expect(200, `${path}/start`, { method: 'POST' })).ip_address;
    });
    after(async () => {
      await removeAll(user);
      await cloud.stop();
      takeDown();
    });

    test('users of machines reach neither this host nor the outside; others do, and they without rules', async () => {
      const endpoints: Endpoint[] = [
        ['127.0.0.1', new URL(cloud.api).port],
        ['127.0.0.1', new URL(cloud.data).port],
        [net.OUTSIDE, String(net.OUTSIDE_PORT)],
        [net.NEIGHBOUR, String(net.OUTSIDE_PORT)],
      ];
      assert.deepEqual(await openConnections(OURS, endpoints), []);
      assert.equal(
        (await openConnections(NEIGHBOURS, endpoints)).length,
        NEIGHBOURS.length * endpoints.length,
      );
      await eventually('what is reached without rules', async () => {
        spawnSync('nft', ['delete', 'table', 'inet', TABLE]);
        return (await openConnections(OURS, endpoints)).length === OURS.length * endpoints.length;
      });
      await eventually('the rules once more', async () => hasRules());
      assert.equal(await reaches(UID_BASE, '127.0.0.1', new URL(cloud.api).port), false);
    });

    test('a machine is reached by its address all the same', async () => {
      assert.match(await sshBanner(address), /^SSH-2\.0/);
      await user.expect(200, `${path}/stop?force=true`, { method: 'POST' });
    });

    test('the end of another cloud with the same users takes nothing away', async () => {
      const other = await CloudProcess.start({ env });
      await other.stop();
      assert.equal(hasRules(), true);
      assert.equal(await reaches(UID_BASE, '127.0.0.1', new URL(cloud.api).port), false);
    });

    test('without nftables machines start, and status says what is missing', async () => {
      spawnSync('mount', ['--bind', '/dev/null', '/usr/sbin/nft']);
      const other = await CloudProcess.start({ env });
      try {
        const anyone = await CheckedClient.open(other.api);
        const owner = anyone.as((await anyone.register()).api_key);
        const { components } = await eventually('what status says', async () => {
          const status = await owner.expect(200, '/api/system/status');
          return status.components.compute.problem !== null && status;
        });
        assert.equal(components.compute.status, 'ok');
        assert.match(components.compute.problem, /can reach every port of this host.*nft/);
        assert.notEqual(components.compute.fix, null);
        const started = await owner.expect(200, `${await newVm(owner)}/start`, { method: 'POST' });
        assert.deepEqual([started.state, started.outbound], ['running', false]);
        await removeAll(owner);
      } finally {
        spawnSync('umount', ['/usr/sbin/nft']);
        await other.stop();
      }
    });
  });
else {
  test('this host is closed to the users of machines, by default', { skip }, () => {
    const { status, output } = net.runInside(import.meta.filename);
    assert.equal(status, 0, output);
  });
}
