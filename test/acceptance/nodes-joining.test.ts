/** Front nodes that start and stop do not interrupt the work of the host. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { eventually } from '../harness/waiting.ts';
import { helloDisk, IMAGES, settled, webServer } from './images-kit.ts';
import { cannotRunGuests, idleImage, newVm } from './vms-kit.ts';

const POINTS = '/api/disaster-recovery/points';
/** Slower sources are given up. */
const PIECE = 32 * 1024;
const LATER = { prefer: 'respond-async' };

describe('beside a host that works', { skip: noCluster }, () => {
  test('a front node starts and stops, and all of it is done', async (t) => {
    const cluster = await Cluster.start(1, { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8' });
    t.after(() => cluster.stop());
    const [host] = cluster.nodes as [CloudProcess];
    const admin = await CheckedClient.open(host.api, ADMIN_KEY);
    const mayRun = cannotRunGuests() === false;
    const vm = mayRun ? await newVm(admin, await idleImage(admin)) : undefined;

    // It arrives slowly until the nodes have come and gone.
    let isOver = false;
    const disk = Buffer.alloc(64 * 2 ** 20);
    helloDisk().copy(disk);
    const source = await webServer(async (_, response) => {
      response.writeHead(200, { 'content-length': disk.length });
      let sent = 0;
      for (; !isOver; sent += PIECE) {
        response.write(disk.subarray(sent, sent + PIECE));
        await sleep(500);
      }
      response.end(disk.subarray(sent));
    });
    t.after(() => source.close());
    const { image_id: image } = await admin.expect(201, IMAGES, {
      json: { name: 'slow', url: `${source.url}/disk` },
    });
    const begin = async (path: string, json: object = {}) => {
      const { operation_id: id } = await admin.expect(202, path, { json, headers: LATER });
      return `/api/operations/${id}`;
    };
    const operations = [
      await begin('/api/databases', { name: 'made', engine: 'postgresql' }),
      ...(vm === undefined ? [] : [await begin(`${vm}/start`)]),
      await begin(POINTS),
    ];
    const joining = cluster.add();
    const fronts = [await joining, await cluster.add()];
    for (const front of fronts) assert.equal(await front.end(), 0);
    isOver = true;

    for (const operation of operations) {
      const ended = await eventually(`the end of ${operation}`, async () => {
        const { body } = await admin.call(`${operation}?wait=60`);
        return body.state === 'running' ? null : body;
      });
      assert.equal(ended.state, 'succeeded', JSON.stringify(ended));
    }
    const imported = await settled(admin, image);
    assert.equal(imported?.state, 'ready', JSON.stringify(imported));
    const databases = await admin.expect(200, '/api/databases');
    assert.deepEqual(
      databases.map(({ state }: { state: string }) => state),
      ['ready'],
    );
    if (vm !== undefined) assert.equal((await admin.expect(200, vm)).state, 'running');
    assert.deepEqual((await admin.expect(200, '/api/system/status')).alarms, []);
  });
});
